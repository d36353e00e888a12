(* The bound behind the certificates' discs (theory/numbers/rounding.py): an inner product of
   length k computed in floats, summed in any order, with or without fused multiply-add, in the
   standard model of rounding with gradual underflow: an operation is off by a factor 1 + d with
   |d| <= u, and a product by e with |e| <= eta besides (sums are exact where they underflow).
   For binary64 u = 2^-53 and eta = 2^-1075.  Ordered field, no axioms.                          *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section InnerProduct.
Variables (R : realFieldType) (u eta : R).
Hypotheses (u_ge0 : 0 <= u) (eta_ge0 : 0 <= eta).
Implicit Types (s : seq (R * R)) (v a b d e x y : R) (k : nat).

(* computed s v: v is a result that rounding may give for the sum of the products of the pairs. *)
Inductive computed : seq (R * R) -> R -> Prop :=
| Product x y d e : `|d| <= u -> `|e| <= eta -> computed [:: (x, y)] (x * y * (1 + d) + e)
| Sum s1 s2 a b d : computed s1 a -> computed s2 b -> `|d| <= u ->
    computed (s1 ++ s2) ((a + b) * (1 + d))
| Fused s a x y d e : computed s a -> `|d| <= u -> `|e| <= eta ->
    computed ((x, y) :: s) ((x * y + a) * (1 + d) + e)
| Order s1 s2 a : perm_eq s1 s2 -> computed s1 a -> computed s2 a.

Definition exact s : R := \sum_(p <- s) p.1 * p.2.
Definition size_of s : R := \sum_(p <- s) `|p.1 * p.2|.
Definition gamma k : R := k%:R * u / (1 - k%:R * u).

Lemma exact_le s : `|exact s| <= size_of s. Proof. exact: ler_norm_sum. Qed.
Lemma size_ge0 s : 0 <= size_of s. Proof. by apply: sumr_ge0 => p _; exact: normr_ge0. Qed.
Lemma up1 : 1 <= 1 + u. Proof. by rewrite ler_addl. Qed.
Lemma up0 : 0 <= 1 + u. Proof. exact: le_trans ler01 up1. Qed.
Lemma pow_le k l : (k <= l)%N -> (1 + u) ^+ k <= (1 + u) ^+ l.
Proof. by move=> kl; rewrite ler_weexpn2l // up1. Qed.

Lemma rounded a b d S T E : `|a - S| <= E -> `|S| <= T -> `|d| <= u ->
  `|a * (1 + d) - S| <= (1 + u) * E + u * T.
Proof.
move=> aE ST du; have E0 : 0 <= E by apply: le_trans aE.
have -> : a * (1 + d) - S = (a - S) * (1 + d) + S * d by ring.
apply: le_trans (ler_norm_add _ _) _; rewrite !normrM; apply: ler_add.
  rewrite mulrC; apply: ler_pmul => //.
  by apply: le_trans (ler_norm_add _ _) _; rewrite normr1 ler_add2l.
by rewrite mulrC ler_pmul.
Qed.

Lemma growth s v : computed s v -> (0 < size s)%N /\
  `|v - exact s| <= ((1 + u) ^+ size s - 1) * size_of s + (size s)%:R * ((1 + u) ^+ size s * eta).
Proof.
elim=> {s v} [x y d e du ee|s1 s2 a b d _ [n1 h1] _ [n2 h2] du|s a x y d e _ [n1 h1] du ee|s1 s2 a p _ [n1 h1]].
- split=> //; rewrite /exact /size_of !big_seq1 /= expr1 mul1r.
  have -> : x * y * (1 + d) + e - x * y = x * y * d + e by ring.
  apply: le_trans (ler_norm_add _ _) _; apply: ler_add.
    by rewrite normrM mulrC [1 + u]addrC addrK ler_wpmul2r.
  by apply: le_trans ee _; rewrite ler_pemull // up1.
- split; first by rewrite size_cat ltn_addr.
  have h : `|a + b - exact (s1 ++ s2)| <= (((1 + u) ^+ size s1 - 1) * size_of s1 +
      (size s1)%:R * ((1 + u) ^+ size s1 * eta)) + (((1 + u) ^+ size s2 - 1) * size_of s2 +
      (size s2)%:R * ((1 + u) ^+ size s2 * eta)).
    rewrite /exact big_cat /= opprD addrACA.
    by apply: le_trans (ler_norm_add _ _) _; apply: ler_add.
  apply: le_trans (rounded 0 h (exact_le _) du) _.
  have -> : size_of (s1 ++ s2) = size_of s1 + size_of s2 by rewrite /size_of big_cat.
  rewrite size_cat natrD.
  have p1 : (1 + u) * (1 + u) ^+ size s1 <= (1 + u) ^+ (size s1 + size s2).
    by rewrite -exprS pow_le // -addn1 leq_add2l.
  have p2 : (1 + u) * (1 + u) ^+ size s2 <= (1 + u) ^+ (size s1 + size s2).
    by rewrite -exprS pow_le // -add1n leq_add2r.
  move: p1 p2 (size_ge0 s1) (size_ge0 s2) (ler0n R (size s1)) (ler0n R (size s2)).
  move: ((1 + u) ^+ size s1) ((1 + u) ^+ size s2) ((1 + u) ^+ (size s1 + size s2)).
  move: (size_of s1) (size_of s2) ((size s1)%:R : R) ((size s2)%:R : R).
  move=> T1 T2 k1 k2 P1 P2 P p1 p2 t1 t2 k10 k20.
  have -> : (1 + u) * ((P1 - 1) * T1 + k1 * (P1 * eta) + ((P2 - 1) * T2 + k2 * (P2 * eta))) +
     u * (T1 + T2) = ((1 + u) * P1 - 1) * T1 + ((1 + u) * P2 - 1) * T2 +
     (k1 * ((1 + u) * P1 * eta) + k2 * ((1 + u) * P2 * eta)) by ring.
  rewrite mulrDr [(k1 + k2) * _]mulrDl.
  by rewrite !ler_add // ?ler_wpmul2r ?ler_add2r // ?ler_wpmul2l // ler_wpmul2r.
- split=> //; have h : `|x * y + a - exact ((x, y) :: s)| <=
      ((1 + u) ^+ size s - 1) * size_of s + (size s)%:R * ((1 + u) ^+ size s * eta).
    by rewrite /exact big_cons /= opprD addrACA subrr add0r.
  have -> : (x * y + a) * (1 + d) + e - exact ((x, y) :: s) =
    ((x * y + a) * (1 + d) - exact ((x, y) :: s)) + e by rewrite addrAC.
  apply: le_trans (ler_norm_add _ _) _.
  apply: le_trans (ler_add (rounded 0 h (exact_le _) du) ee) _.
  have -> : size_of ((x, y) :: s) = `|x * y| + size_of s by rewrite /size_of big_cons.
  rewrite /= exprSr -[(size s).+1]addn1 natrD.
  have P1 : 1 <= (1 + u) ^+ size s by rewrite exprn_ege1 // up1.
  move: P1 (size_ge0 s) (ler0n R (size s)) (normr_ge0 (x * y)).
  move: ((1 + u) ^+ size s) (size_of s) ((size s)%:R : R) (`|x * y|) => P T k z P1 T0 k0 z0.
  rewrite -subr_ge0.
  have -> : (P * (1 + u) - 1) * (z + T) + (k + 1) * (P * (1 + u) * eta) -
    ((1 + u) * ((P - 1) * T + k * (P * eta)) + u * (z + T) + eta) =
    (P - 1) * ((1 + u) * z) + (P * (1 + u) - 1) * eta by ring.
  have := ler_pmul ler01 ler01 P1 up1; rewrite mulr1 -subr_ge0 => g0.
  apply: addr_ge0; last exact: mulr_ge0.
  by apply: mulr_ge0; [rewrite subr_ge0 | exact: mulr_ge0 up0 z0].
- have E (F : R * R -> R) : \sum_(q <- s1) F q = \sum_(q <- s2) F q by apply: perm_big.
  by rewrite -(perm_size p) /exact /size_of -!E.
Qed.

Lemma bernoulli k : (1 + u) ^+ k * (1 - k%:R * u) <= 1.
Proof.
elim: k => [|k IH]; first by rewrite expr0 mul1r mul0r subr0.
apply: le_trans IH; rewrite exprSr -mulrA ler_wpmul2l ?exprn_ge0 ?up0 //.
rewrite -subr_ge0 -addn1 natrD.
have -> : 1 - k%:R * u - (1 + u) * (1 - (k%:R + 1) * u) = (k%:R + 1) * u ^+ 2.
  by move: (k%:R : R) => a; ring.
by rewrite mulr_ge0 ?sqr_ge0 // addr_ge0 ?ler0n ?ler01.
Qed.

(* Off by at most gamma_k |x|^T |y| + 2 k eta, for k u <= 1/2. *)
Theorem inner_product s v : computed s v -> (size s)%:R * u <= 2%:R^-1 ->
  `|v - exact s| <= gamma (size s) * size_of s + (size s)%:R * (2%:R * eta).
Proof.
move=> c ku; have [_ g] := growth c; apply: le_trans g _.
have B := bernoulli (size s); rewrite /gamma; set P := (1 + u) ^+ _ in B *.
set w := (size s)%:R * u in B ku *.
have w1 : 2%:R^-1 <= 1 - w.
  have -> : 2%:R^-1 = 1 - 2%:R^-1 :> R by field.
  by rewrite ler_add2l ler_opp2.
have h0 : 0 < 2%:R^-1 :> R by rewrite invr_gt0 ltr0n.
have p0 : 0 < 1 - w by apply: lt_le_trans w1.
have PB : P <= (1 - w)^-1 by rewrite -[X in _ <= X]mul1r ler_pdivl_mulr.
apply: ler_add.
  rewrite ler_wpmul2r ?size_ge0 //.
  have -> : w / (1 - w) = (1 - w)^-1 - 1.
    by move: w p0 {B ku w1 PB} => z z0; field; rewrite gt_eqF.
  by rewrite ler_add2r.
rewrite ler_wpmul2l ?ler0n // ler_wpmul2r //; apply: le_trans PB _.
by rewrite -[X in X <= _]mul1r ler_pdivr_mulr // -ler_pdivr_mull ?ltr0n // mulr1.
Qed.
End InnerProduct.

(* The hypotheses hold for the unit roundoff of float64. *)
Section Instances.
Variable R : realFieldType.
Let u_ge0 : 0 <= (2%:R^-1 ^+ 53 : R). Proof. by rewrite exprn_ge0 // invr_ge0 ler0n. Qed.
Definition inner_product_instance := @inner_product R (2%:R^-1 ^+ 53) 0 u_ge0 (lexx 0).
End Instances.
