(* Dobrushin's bound for attention that changes without a residual (N-2312.06182-changing-bound),
   and a mean of zero (T11.7).  No axioms. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
Require Import T1_blocks T7b_certificate.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* Without a residual, one feature: osc(X_L) <= |h|^L prod tau osc(X_0), ||HFC||^2 <= n/4 osc^2. *)
Section NoResidual.
Variables (R : realFieldType) (n' : nat).
Local Notation n := n'.+1.
Implicit Types (x : 'I_n -> R).

(* Popoviciu *)
Lemma HFC_osc x : HFC2 x <= n%:R / 4%:R * osc x ^+ 2.
Proof.
pose mid := 2%:R^-1 * (x (top x) + x (bot x)).
have S (c : R) : \sum_(i < n) c = n%:R * c by rewrite sumr_const card_ord mulr_natl.
have M : \sum_i x i = n%:R * T7b_certificate.mean x.
  by rewrite /T7b_certificate.mean mulrA mulfV ?pnatr_eq0 // mul1r.
have V (c : R) : \sum_i (x i - c) ^+ 2 =
    \sum_i x i ^+ 2 - 2%:R * c * (n%:R * T7b_certificate.mean x) + n%:R * c ^+ 2.
  transitivity (\sum_i (x i ^+ 2 - 2%:R * c * x i + c ^+ 2)).
    by apply: eq_bigr => i _; ring.
  by rewrite big_split sumrB -mulr_sumr M S.
apply: (@le_trans _ _ (\sum_i (x i - mid) ^+ 2)).
  rewrite /HFC2 !V -subr_ge0.
  set m := T7b_certificate.mean x; set q := \sum_i x i ^+ 2.
  have -> : q - 2%:R * mid * (n%:R * m) + n%:R * mid ^+ 2 -
    (q - 2%:R * m * (n%:R * m) + n%:R * m ^+ 2) = n%:R * (mid - m) ^+ 2.
    by move: mid m q (n%:R : R) => a b c e; ring.
  by rewrite mulr_ge0 ?ler0n ?sqr_ge0.
have -> : n%:R / 4%:R * osc x ^+ 2 = \sum_(i < n) (2%:R^-1 * osc x) ^+ 2.
  by rewrite S; move: (n%:R : R) (osc x) => a b; field.
apply: ler_sum => i _; rewrite -[X in X <= _]real_normK ?num_real //.
have o0 : 0 <= 2%:R^-1 * osc x by rewrite mulr_ge0 ?invr_ge0 ?ler0n ?osc_ge0.
rewrite ler_expn2r ?nnegrE ?normr_ge0 // ler_norml; apply/andP; split.
  rewrite -subr_ge0 (_ : _ - _ = x i - x (bot x)) ?subr_ge0 ?bot_le //.
  by rewrite /mid /osc; field.
rewrite -subr_ge0 (_ : _ - _ = x (top x) - x i) ?subr_ge0 ?le_top //.
by rewrite /mid /osc; field.
Qed.

Variables (A : nat -> ('I_n -> R) -> 'I_n -> 'I_n -> R) (t : nat -> R) (h : R).
Fixpoint products L x : 'I_n -> R :=
  if L is l.+1 then fun i => app (A l (products l x)) (products l x) i * h else x.
Variable x : 'I_n -> R.
Hypothesis stochA : forall l, stochastic (A l (products l x)).
Hypothesis tauA : forall l, tau_le (A l (products l x)) (t l).
Hypothesis t_ge0 : forall l, 0 <= t l.

Theorem changing_bound L :
  osc (products L x) <= `|h| ^+ L * (\prod_(l < L) t l) * osc x /\
  HFC2 (products L x) <= n%:R / 4%:R * (`|h| ^+ L * (\prod_(l < L) t l) * osc x) ^+ 2.
Proof.
have H : osc (products L x) <= `|h| ^+ L * (\prod_(l < L) t l) * osc x.
  elim: L => [|L IH]; first by rewrite big_ord0 expr0 !mul1r.
  rewrite {1}/osc; set y := products L.+1 x; move: (top y) (bot y) => i k.
  rewrite /y /= -mulrBl; set z := products L x in IH *.
  apply: le_trans (ler_norm _) _; rewrite normrM mulrC.
  apply: (@le_trans _ _ (`|h| * (t L * osc z))).
    by rewrite ler_wpmul2l ?normr_ge0 //; exact: contraction (stochA L) (tauA L).
  rewrite big_ord_recr exprS /=.
  have -> : `|h| * `|h| ^+ L * (\prod_(l < L) t l * t L) * osc x =
    `|h| * (t L * (`|h| ^+ L * (\prod_(l < L) t l) * osc x)).
    by move: (`|h| ^+ L) (\prod_(l < L) t l) => a b; ring.
  by rewrite ler_wpmul2l ?normr_ge0 // ler_wpmul2l.
split=> //; apply: le_trans (HFC_osc _) _; rewrite ler_wpmul2l ?mulr_ge0 ?invr_ge0 ?ler0n //.
by rewrite ler_expn2r ?nnegrE ?osc_ge0 // (le_trans (osc_ge0 _) H).
Qed.
End NoResidual.

(* It is attained by two matrices whose second eigenvalues are 0: their squares have equal rows. *)
Section Attained.
Definition table (f : seq (seq nat)) (i j : 'I_3) : rat := (nth 0%N (nth [::] f i) j)%:R / 4%:R.
Definition first := table [:: [:: 1; 2; 1]; [:: 1; 2; 1]; [:: 2; 1; 1]]%N.
Definition second := table [:: [:: 1; 1; 2]; [:: 1; 2; 1]; [:: 1; 2; 1]]%N.
Definition start (i : 'I_3) : rat := nth 0 [:: - 2%:R; 1; 1] i.

Lemma sum3 (V : zmodType) (F : 'I_3 -> V) : \sum_i F i = F 0 + (F 1 + F (Ordinal (isT : (2 < 3)%N))).
Proof. by rewrite !big_ord_recl big_ord0 addr0; congr (F _ + (F _ + F _)); apply: val_inj. Qed.
Lemma ind3 (Q : 'I_3 -> Prop) : Q 0 -> Q 1 -> Q (Ordinal (isT : (2 < 3)%N)) -> forall i, Q i.
Proof.
by move=> q0 q1 q2 [[|[|[|//]]] p]; [move: q0|move: q1|move: q2]; congr Q; apply: val_inj.
Qed.

Theorem attained :
  let A l (_ : 'I_3 -> rat) := if l == 0%N then first else second in
  let square B i j := \sum_k B i k * B k j : rat in
  [/\ stochastic first /\ stochastic second, tau_le first (1 / 4%:R) /\ tau_le second (1 / 4%:R),
      (forall i j, square first i j = square first 0 j) /\
      (forall i j, square second i j = square second 0 j),
      0 < osc start & osc (products A 1 2 start) = 1 / 4%:R * (1 / 4%:R) * osc start].
Proof.
move=> A square.
have s1 : stochastic first.
  by split=> [i j|i]; [elim/ind3: i; elim/ind3: j; vm_compute | elim/ind3: i; rewrite sum3; apply/eqP; vm_compute].
have s2 : stochastic second.
  by split=> [i j|i]; [elim/ind3: i; elim/ind3: j; vm_compute | elim/ind3: i; rewrite sum3; apply/eqP; vm_compute].
have t1 : tau_le first (1 / 4%:R) by move=> i k; elim/ind3: i; elim/ind3: k; rewrite sum3; vm_compute.
have t2 : tau_le second (1 / 4%:R) by move=> i k; elim/ind3: i; elim/ind3: k; rewrite sum3; vm_compute.
have o3 : osc start <= 3%:R.
  by rewrite /osc; move: (top start) (bot start) => i k; elim/ind3: i; elim/ind3: k; vm_compute.
have o0 : 0 < osc start by apply: (@lt_le_trans _ _ (start 1 - start 0)); [vm_compute | exact: osc_ge].
split=> //.
  by split=> i j; apply/eqP; rewrite /square !sum3; elim/ind3: i; elim/ind3: j; vm_compute.
apply/eqP; rewrite eq_le; apply/andP; split.
  have := (changing_bound (t := fun=> 1 / 4%:R) (h := 1) (A := A) (x := start) _ _ _ 2).1.
  rewrite normr1 expr1n mul1r !big_ord_recl big_ord0 mulr1; apply=> // -[|l] //.
apply: (@le_trans _ _ (3%:R / 16%:R)).
  apply: (@le_trans _ _ (1 / 4%:R * (1 / 4%:R) * 3%:R)); first by rewrite ler_wpmul2l.
  by vm_compute.
apply: (@le_trans _ _ (products A 1 2 start 1 - products A 1 2 start 0)); last exact: osc_ge.
rewrite /= /app !sum3.
by vm_compute.
Qed.
End Attained.

Section States.
Variables (R : realFieldType) (n' d : nat).
Local Notation n := n'.+1.
Implicit Types (A : 'M[R]_n) (X : 'M[R]_(n, d)) (W : 'M[R]_d).
Lemma LFC0_mean X : LFC X = 0 <-> (one R n')^T *m X = 0.
Proof.
split=> [|E]; last by rewrite LFC_mean /T1_blocks.mean E scaler0 mulmx0.
rewrite LFC_mean => H; have := congr1 (mulmx (one R n')^T) H.
rewrite mulmx0 mulmxA one_one mul_scalar_mx => /eqP.
rewrite scaler_eq0 (negPf (nz R n')) /= /T1_blocks.mean scaler_eq0 invr_eq0 (negPf (nz R n')) /=.
by move/eqP.
Qed.

(* T11.7 *)
Theorem mean_zero X : (one R n')^T *m X = 0 -> X != 0 -> LFC X = 0 /\ HFC X != 0.
Proof.
move=> m0 X0; have L0 : LFC X = 0 by apply/LFC0_mean.
by split=> //; apply: contraNneq X0 => H; rewrite (HFC_LFC X) H L0 addr0.
Qed.
End States.

(* At these values the hypotheses hold. *)
Section Instances.
Variable R : realFieldType.
Definition changing_bound_instance (x : 'I_2 -> R) :=
  @changing_bound R 1 (@everywhere R) (fun=> 0) 1 x (fun=> (even_stochastic R)) (fun=> (even_tau R)) (fun=> (zero_ge0 R)).
End Instances.
