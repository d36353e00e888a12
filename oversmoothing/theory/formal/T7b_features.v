(* T7b-certificate for several features and heads in a common basis V of all W (attention of every
   layer arbitrary), and tau from the spread of the logits.  Ordered field, no axioms; the
   exponential is any positive increasing one with E (x + y) = E x E y.                           *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
Require Import T7b_certificate T7b_matrix.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section OneFeature.
Variables (R : realFieldType) (n' : nat).
Local Notation n := n'.+1.
Implicit Types (x y : 'I_n -> R).

Lemma osc_ext x y : x =1 y -> osc x = osc y.
Proof.
by move=> E; apply/eqP; rewrite eq_le {1}/osc {2}/osc !E osc_ge -!E osc_ge.
Qed.
Lemma mean_ext x y : x =1 y -> mean x = mean y.
Proof. by move=> E; rewrite /mean; congr (_ * _); apply: eq_bigr => i _; rewrite E. Qed.

(* Heads with h_g <= 0 act on a feature as one head, with their weighted mean. *)
Lemma one_head k (A : 'I_k -> 'M[R]_n) (h : 'I_k -> R) t : 0 <= t ->
  (forall g, stochastic (A g)) -> (forall g, tau_le (A g) t) -> (forall g, h g <= 0) ->
  exists B : 'I_n -> 'I_n -> R, [/\ stochastic B, tau_le B t &
    forall x i, x i + \sum_g h g * app (A g) x i = layer (\sum_g h g) B x i].
Proof.
move=> t0 S T h0; set s := \sum_g h g.
have [s0|sn] := eqVneq s 0.
  exists (fun _ _ => n%:R^-1); split.
  - split=> [i j|i]; first by rewrite invr_ge0 ler0n.
    by rewrite sumr_const card_ord -[LHS]mulr_natl mulfV // pnatr_eq0.
  - move=> i l; rewrite big1 => [|j _]; first by rewrite mulr_ge0 ?ler0n.
    by rewrite subrr normr0.
  - move=> x i; rewrite /layer s0 mul0r big1 ?addr0 // => g _.
    have z : h g = 0.
      have P : \sum_g - h g = 0 by rewrite sumrN -/s s0 oppr0.
      have Q g' : true -> 0 <= - h g' by rewrite oppr_ge0.
      by move/(psumr_eq0P Q)/(_ g isT)/eqP: P; rewrite oppr_eq0 => /eqP.
    by rewrite z mul0r.
have sl : s <= 0 by rewrite -oppr_ge0 -sumrN sumr_ge0 // => g _; rewrite oppr_ge0.
have q0 g : 0 <= h g / s by rewrite mulr_le0 // invr_le0.
have q1 : \sum_g h g / s = 1 by rewrite -mulr_suml divff.
exists (fun i j => \sum_g h g / s * A g i j); split.
- split=> [i j|i]; first by apply: sumr_ge0 => g _; rewrite mulr_ge0 //; case: (S g).
  rewrite exchange_big /= -[RHS]q1; apply: eq_bigr => g _.
  by case: (S g) => _ Sg; rewrite -mulr_sumr Sg mulr1.
- move=> i l; apply: (@le_trans _ _ (\sum_j \sum_g h g / s * `|A g i j - A g l j|)).
    apply: ler_sum => j _; rewrite -sumrB; apply: le_trans (ler_norm_sum _ _ _) _.
    by apply: ler_sum => g _; rewrite -mulrBr normrM (ger0_norm (q0 g)).
  have -> : 2%:R * t = \sum_g h g / s * (2%:R * t) by rewrite -mulr_suml q1 mul1r.
  rewrite exchange_big; apply: ler_sum => g _.
  by rewrite -mulr_sumr; apply: ler_wpmul2l (T g i l).
- move=> x i; rewrite /layer /app; congr (_ + _).
  rewrite (eq_bigr (fun j => \sum_g h g / s * (A g i j * x j))); last first.
    by move=> j _; rewrite mulr_suml; apply: eq_bigr => g _; rewrite mulrA.
  rewrite exchange_big mulr_sumr; apply: eq_bigr => g _.
  by rewrite -mulr_sumr mulrA [s * _]mulrC divfK.
Qed.
End OneFeature.

Section Features.
Variables (R : realFieldType) (n' d k : nat).
Local Notation n := n'.+1.
Variables (V V' : 'M[R]_d) (A : nat -> 'M[R]_(n, d) -> 'I_k -> 'M[R]_n).
Variables (h : nat -> 'I_k -> 'I_d -> R) (t : R).
Hypothesis VV' : V *m V' = 1%:M.
Definition weights l g : 'M[R]_d := V *m diag_mx (\row_j h l g j) *m V'.
Local Notation state := (heads_state A (fun l _ => weights l)).
Variable X : 'M[R]_(n, d).
Hypothesis stochA : forall l g, stochastic (A l (state l X) g).
Hypothesis tauA : forall l g, tau_le (A l (state l X) g) t.
Hypothesis h_range : forall l j, (forall g, h l g j <= 0) /\ -1 <= \sum_g h l g j.
Hypothesis t_range : 0 <= t < 1.

Definition feature (X : 'M[R]_(n, d)) j : 'I_n -> R := fun i => (X *m V) i j.
Definition HFC2m (X : 'M[R]_(n, d)) : R := \sum_j HFC2 (fun i => X i j).
Definition LFC2m (X : 'M[R]_(n, d)) : R := \sum_j LFC2 (fun i => X i j).

Lemma feature_layer l Y j i : feature (heads_layer (A l Y) (weights l) Y) j i =
  feature Y j i + \sum_g h l g j * app (A l Y g) (feature Y j) i.
Proof.
have V'V := mulmx1C VV'.
rewrite /feature /heads_layer mulmxDl mxE; congr (_ + _).
rewrite mulmx_suml summxE; apply: eq_bigr => g _.
have -> : A l Y g *m Y *m weights l g *m V = A l Y g *m (Y *m V) *m diag_mx (\row_j h l g j).
  by rewrite /weights -!mulmxA V'V mulmx1.
by rewrite mul_mx_diag mxE mxE mulrC [in LHS]mxE.
Qed.

Lemma feature_state j K L : 0 <= K -> kk R n' <= K * (1 - t) ->
  0 < osc (feature X j) -> `|mean (feature X j)| <= K * osc (feature X j) ->
  0 < osc (feature (state L X) j) /\
  `|mean (feature (state L X) j)| <= K * osc (feature (state L X) j).
Proof.
move=> K0 kK o0 mx; case/andP: (t_range) => t0 _; elim: L => [//|L [oL mL]] /=.
set Y := state L X in oL mL *.
have [h0 h1] := h_range L j.
have [B [SB TB E]] := one_head t0 (stochA L) (tauA L) h0.
have F i : feature (heads_layer (A L Y) (weights L) Y) j i =
           layer (\sum_g h L g j) B (feature Y j) i by rewrite feature_layer E.
rewrite (osc_ext F) (mean_ext F).
apply: (one_layer SB TB _ t_range kK K0 oL mL).
by rewrite h1 -oppr_ge0 -sumrN sumr_ge0 // => g _; rewrite oppr_ge0.
Qed.

Lemma feature_zero j L : (forall i, feature X j i = 0) -> forall i, feature (state L X) j i = 0.
Proof.
move=> z; elim: L => [//|L IH] i /=; rewrite feature_layer IH add0r big1 // => g _.
by rewrite /app big1 ?mulr0 // => l _; rewrite IH mulr0.
Qed.

Lemma constant (x : 'I_n -> R) i : osc x <= 0 -> x i = mean x.
Proof.
move=> o; have le a b : x a <= x b by rewrite -subr_le0 (le_trans (osc_ge x a b) o).
have E l : x l = x i by apply/eqP; rewrite eq_le !le.
rewrite /mean (eq_bigr (fun=> x i)) // sumr_const card_ord -[x i *+ _]mulr_natl.
by rewrite mulKf // pnatr_eq0.
Qed.

Lemma HFC2_ge0 (x : 'I_n -> R) : 0 <= HFC2 x.
Proof. by apply: sumr_ge0 => i _; exact: sqr_ge0. Qed.

(* HFC/LFC >= 1/(kappa(V) K sqrt(2n)) for every L, K = max(u_0, (1 - 1/n)/(1 - t)), as squares;
   a and b: the squared norms of V and of its inverse V', or larger. *)
Theorem features u0 a b L :
  (forall j, mean (feature X j) != 0 -> 0 < osc (feature X j)) ->
  (forall j, `|mean (feature X j)| <= u0 * osc (feature X j)) ->
  (forall v : 'rV[R]_d, \sum_j (v *m V) 0 j ^+ 2 <= a * \sum_j v 0 j ^+ 2) ->
  (forall v : 'rV[R]_d, \sum_j (v *m V') 0 j ^+ 2 <= b * \sum_j v 0 j ^+ 2) ->
  0 <= b ->
  let K := Num.max u0 ((1 - n%:R^-1) / (1 - t)) in
  LFC2m (state L X) <= (a * b) * (2%:R * n%:R * K ^+ 2) * HFC2m (state L X).
Proof.
move=> mo mu aV bV bp; set K := Num.max _ _; case/andP: (t_range) => t0 t1 /=.
have p0 : 0 < 1 - t by rewrite subr_gt0.
have k0 : 0 <= kk R n' by rewrite subr_ge0 invf_le1 ?ltr0n // ler1n.
have K0 : 0 <= K by rewrite le_maxr (divr_ge0 k0 (ltW p0)) orbT.
have kK : kk R n' <= K * (1 - t) by rewrite -ler_pdivr_mulr // /K le_maxr lexx orbT.
set Y := state L X.
have fl j : LFC2 (feature Y j) <= 2%:R * n%:R * K ^+ 2 * HFC2 (feature Y j).
  have [o|o] := lerP (osc (feature X j)) 0.
    have m0 : mean (feature X j) = 0.
      by apply/eqP; apply: contraLR o => /mo; rewrite -ltNge.
    have z i : feature Y j i = 0 by apply: feature_zero => l; rewrite constant.
    rewrite /LFC2 /mean big1 => [|i _]; last by rewrite z.
    rewrite mulr0 expr0n mulr0 mulr_ge0 ?HFC2_ge0 // mulr_ge0 ?sqr_ge0 //.
    by rewrite mulr_ge0 ?ler0n.
  have [|oL mL] := feature_state L K0 kK o.
    by apply: le_trans (mu j) _; rewrite ler_wpmul2r ?osc_ge0 // le_maxr lexx.
  have mm : mean (feature Y j) ^+ 2 <= K ^+ 2 * osc (feature Y j) ^+ 2.
    rewrite -exprMn -[X in X <= _]real_normK ?num_real //.
    by rewrite ler_expn2r ?nnegrE ?normr_ge0 // mulr_ge0 // ltW.
  have le2 : mean (feature Y j) ^+ 2 <= K ^+ 2 * (2%:R * HFC2 (feature Y j)).
    by apply: le_trans mm _; rewrite ler_wpmul2l ?sqr_ge0 ?osc_HFC.
  have -> : 2%:R * n%:R * K ^+ 2 * HFC2 (feature Y j) =
    n%:R * (K ^+ 2 * (2%:R * HFC2 (feature Y j))) by ring.
  by rewrite /LFC2 ler_wpmul2l ?ler0n.
pose m : 'rV[R]_d := \row_j mean (fun i => Y i j).
have mV j : (m *m V) 0 j = mean (feature Y j).
  rewrite mxE /mean /feature; under [in RHS]eq_bigr do rewrite mxE.
  rewrite exchange_big mulr_sumr /=; apply: eq_bigr => l _.
  by rewrite mxE /mean -mulrA mulr_suml.
pose D : 'M[R]_(n, d) := \matrix_(i, j) (Y i j - m 0 j).
have DV i j : (row i D *m V) 0 j = feature Y j i - mean (feature Y j).
  transitivity (\sum_l D i l * V l j); first by rewrite mxE; apply: eq_bigr => l _; rewrite mxE.
  rewrite -mV /feature [(m *m V) 0 j]mxE [(Y *m V) i j]mxE -sumrB; apply: eq_bigr => l _.
  by rewrite [D i l]mxE mulrBl.
apply: (@le_trans _ _ (b * \sum_j LFC2 (feature Y j))).
  have -> : LFC2m Y = n%:R * \sum_j m 0 j ^+ 2.
    by rewrite mulr_sumr; apply: eq_bigr => j _; rewrite mxE.
  have -> : \sum_j LFC2 (feature Y j) = n%:R * \sum_j (m *m V) 0 j ^+ 2.
    by rewrite mulr_sumr; apply: eq_bigr => j _; rewrite mV.
  rewrite mulrCA ler_wpmul2l ?ler0n // {1}(_ : m = m *m V *m V') //.
  by rewrite -mulmxA VV' mulmx1.
have step : \sum_j LFC2 (feature Y j) <= 2%:R * n%:R * K ^+ 2 * \sum_j HFC2 (feature Y j).
  by rewrite mulr_sumr; apply: ler_sum => j _.
have aH : \sum_j HFC2 (feature Y j) <= a * HFC2m Y.
  have -> : HFC2m Y = \sum_i \sum_j D i j ^+ 2.
    rewrite exchange_big; apply: eq_bigr => j _; apply: eq_bigr => i _.
    by rewrite !mxE.
  have -> : \sum_j HFC2 (feature Y j) = \sum_i \sum_j (row i D *m V) 0 j ^+ 2.
    rewrite exchange_big; apply: eq_bigr => j _; apply: eq_bigr => i _.
    by rewrite DV.
  rewrite mulr_sumr; apply: ler_sum => i _; apply: le_trans (aV _) _.
  by rewrite (eq_bigr (fun j => D i j ^+ 2)) // => j _; rewrite mxE.
apply: (@le_trans _ _ (b * (2%:R * n%:R * K ^+ 2 * \sum_j HFC2 (feature Y j)))).
  by rewrite ler_wpmul2l.
have -> : a * b * (2%:R * n%:R * K ^+ 2) * HFC2m Y = b * (2%:R * n%:R * K ^+ 2) * (a * HFC2m Y).
  by ring.
have -> : b * (2%:R * n%:R * K ^+ 2 * \sum_j HFC2 (feature Y j)) =
  b * (2%:R * n%:R * K ^+ 2) * \sum_j HFC2 (feature Y j) by rewrite mulrA.
apply: ler_wpmul2l aH.
by rewrite mulr_ge0 // mulr_ge0 ?sqr_ge0 // mulr_ge0 ?ler0n.
Qed.
End Features.

(* Clause 6: tau from the spread 2 B of the logits of a row. *)
Section Logits.
Variables (R : realFieldType) (n' : nat) (E : R -> R).
Local Notation n := n'.+1.
Hypothesis E_pos : forall x, 0 < E x.
Hypothesis E_add : forall x y, E (x + y) = E x * E y.
Hypothesis E_le : forall x y, x <= y -> E x <= E y.
Definition tanh x : R := (E x - E (- x)) / (E x + E (- x)).

Lemma E0 : E 0 = 1.
Proof.
have /eqP := E_add 0 0; rewrite addr0 -[X in X == _]mulr1.
by rewrite (inj_eq (mulfI (lt0r_neq0 (E_pos 0)))) => /eqP.
Qed.
Lemma EN x : E x * E (- x) = 1. Proof. by rewrite -E_add subrr E0. Qed.

(* Two numbers in [0, 1] whose odds differ by a factor r^2 at most. *)
Lemma odds (r p q : R) : 1 <= r -> 0 <= p <= 1 -> 0 <= q <= 1 ->
  p * (1 - q) <= r ^+ 2 * ((1 - p) * q) -> (r + 1) * (p - q) <= r - 1.
Proof.
move=> r1 /andP[p0 p1] /andP[q0 q1]; set x := p * (1 - q); set y := (1 - p) * q => xy.
pose z := p * q + (1 - p) * (1 - q).
have y0 : 0 <= y by rewrite mulr_ge0 // subr_ge0.
have x0 : 0 <= x by rewrite mulr_ge0 // subr_ge0.
have z0 : 0 <= z by rewrite addr_ge0 // mulr_ge0 // subr_ge0.
have s0 : 0 <= r - 1 by rewrite subr_ge0.
have zz : 4%:R * (x * y) <= z ^+ 2.
  have e : z ^+ 2 - 4%:R * (x * y) = (p * q - (1 - p) * (1 - q)) ^+ 2 by rewrite /x /y /z; ring.
  by rewrite -subr_ge0 e sqr_ge0.
rewrite leNgt; apply/negP => lt.
have u : (r - 1) * z < 2%:R * (x - r * y).
  have e : 2%:R * (x - r * y) - (r - 1) * z = (r + 1) * (p - q) - (r - 1) by rewrite /x /y /z; ring.
  by rewrite -subr_gt0 e subr_gt0.
have u0 : 0 <= (r - 1) * z by rewrite mulr_ge0.
have v0 : 0 < 2%:R * (x - r * y) by apply: le_lt_trans u.
have sq : ((r - 1) * z) ^+ 2 < (2%:R * (x - r * y)) ^+ 2.
  by rewrite ltr_expn2r // ?nnegrE ?(ltW v0).
have sq2 : (r - 1) ^+ 2 * (4%:R * (x * y)) < (2%:R * (x - r * y)) ^+ 2.
  by apply: le_lt_trans sq; rewrite exprMn ler_wpmul2l ?sqr_ge0.
have v1 : 0 < x - r * y by move: v0; rewrite pmulr_rgt0 ?ltr0n.
have d0 : 0 <= x - y.
  have -> : x - y = (x - r * y) + (r - 1) * y by ring.
  exact: addr_ge0 (ltW v1) (mulr_ge0 s0 y0).
have d1 : 0 <= r ^+ 2 * y - x by rewrite subr_ge0.
have e : (r - 1) ^+ 2 * (4%:R * (x * y)) - (2%:R * (x - r * y)) ^+ 2 =
  4%:R * ((x - y) * (r ^+ 2 * y - x)) by ring.
move: sq2; rewrite -subr_lt0 e ltNge => /negP; apply.
exact: mulr_ge0 (ler0n _ 4) (mulr_ge0 d0 d1).
Qed.

Lemma two_rows (r : R) (p q : 'I_n -> R) : 1 <= r ->
  (forall i, 0 <= p i) -> (forall i, 0 <= q i) -> \sum_i p i = 1 -> \sum_i q i = 1 ->
  (forall i j, p i <= r * p j) -> (forall i j, q i <= r * q j) ->
  \sum_j `|p j - q j| <= 2%:R * ((r - 1) / (r + 1)).
Proof.
move=> r1 p0 q0 p1 q1 pr qr.
have rp : 0 < r + 1 by rewrite addr_gt0 ?ltr01 // (lt_le_trans ltr01).
pose S := [pred j | q j < p j].
set P := \sum_(j | S j) p j; set Q := \sum_(j | S j) q j.
have ep : 1 = P + \sum_(j | ~~ S j) p j by rewrite -p1 (bigID S).
have eq : 1 = Q + \sum_(j | ~~ S j) q j by rewrite -q1 (bigID S).
have cp : \sum_(j | ~~ S j) p j = 1 - P by rewrite {1}ep addrAC subrr add0r.
have cq : \sum_(j | ~~ S j) q j = 1 - Q by rewrite {1}eq addrAC subrr add0r.
have P0 : 0 <= P by apply: sumr_ge0.
have Q0 : 0 <= Q by apply: sumr_ge0.
have P1 : 0 <= 1 - P by rewrite -cp sumr_ge0.
have Q1 : 0 <= 1 - Q by rewrite -cq sumr_ge0.
have -> : \sum_j `|p j - q j| = 2%:R * (P - Q).
  rewrite (bigID S) /=.
  rewrite (eq_bigr (fun j => p j - q j)) => [|j s]; last by rewrite gtr0_norm // subr_gt0.
  rewrite [X in _ + X](eq_bigr (fun j => q j - p j)) => [|j s]; last first.
    by rewrite ler0_norm ?opprB // subr_le0 leNgt.
  by rewrite !sumrB cp cq -/P -/Q; ring.
rewrite ler_wpmul2l ?ler0n // ler_pdivl_mulr // mulrC.
have [P1' Q1'] : P <= 1 /\ Q <= 1 by rewrite -subr_ge0 P1 -subr_ge0 Q1.
have [a0|a0] := posnP #|S|.
  have z (f : 'I_n -> R) : \sum_(j | S j) f j = 0.
    by apply: big_pred0 => j; exact: (card0_eq a0).
  by rewrite /P /Q !z subrr mulr0 subr_ge0.
have [b0|b0] := posnP #|predC S|.
  have z (f : 'I_n -> R) : \sum_(j | ~~ S j) f j = 0.
    by apply: big_pred0 => j; exact: (card0_eq b0).
  move: cp cq; rewrite !z => /esym/eqP; rewrite subr_eq0 => /eqP <- /esym/eqP.
  by rewrite subr_eq0 => /eqP <-; rewrite subrr mulr0 subr_ge0.
apply: odds; rewrite ?P0 ?P1' ?Q0 ?Q1' //.
have cS (c : R) : \sum_(j | S j) c = #|S|%:R * c by rewrite sumr_const mulr_natl.
have cC (c : R) : \sum_(j | ~~ S j) c = #|predC S|%:R * c by rewrite sumr_const mulr_natl.
have h1 : #|predC S|%:R * P <= r * (#|S|%:R * (1 - P)).
  rewrite -cS -cp mulr_sumr /P mulr_sumr; apply: ler_sum => i _.
  by rewrite -cC mulr_sumr; apply: ler_sum => j _.
have h2 : #|S|%:R * (1 - Q) <= r * (#|predC S|%:R * Q).
  rewrite -cC -cq mulr_sumr mulr_sumr; apply: ler_sum => i _.
  by rewrite -cS /Q mulr_sumr; apply: ler_sum => j _.
have ab : 0 < #|predC S|%:R * #|S|%:R :> R by rewrite mulr_gt0 // ltr0n.
rewrite -(ler_pmul2l ab).
have -> : #|predC S|%:R * #|S|%:R * (P * (1 - Q)) =
  (#|predC S|%:R * P) * (#|S|%:R * (1 - Q)) by ring.
have -> : #|predC S|%:R * #|S|%:R * (r ^+ 2 * ((1 - P) * Q)) =
  (r * (#|S|%:R * (1 - P))) * (r * (#|predC S|%:R * Q)) by ring.
by apply: ler_pmul; rewrite ?mulr_ge0 ?ler0n.
Qed.

Variables (l : 'I_n -> 'I_n -> R) (B : R).

(* Masked to S i, the tokens that token i attends to. *)
Definition softmax (S : 'I_n -> pred 'I_n) i j : R :=
  if S i j then E (l i j) / \sum_(k | S i k) E (l i k) else 0.

Lemma softmax_stochastic (S : 'I_n -> pred 'I_n) : (forall i, exists j, S i j) -> stochastic (softmax S).
Proof.
move=> ne; have pos i : 0 < \sum_(k | S i k) E (l i k).
  case: (ne i) => k ik; rewrite (bigD1 k) //= ltr_paddr //.
  by apply: sumr_ge0 => *; exact: ltW.
split=> [i j|i]; rewrite /softmax; first by case: ifP => // _; rewrite divr_ge0 // ltW.
by rewrite -big_mkcond -mulr_suml divff // gt_eqF.
Qed.

(* tau <= tanh B *)
Theorem tau_logits : (forall i j k, l i j - l i k <= 2%:R * B) ->
  stochastic (softmax (fun _ => xpredT)) /\ tau_le (softmax (fun _ => xpredT)) (tanh B).
Proof.
move=> spread; set A := softmax _.
have st : stochastic A by apply: softmax_stochastic => i; exists i.
split=> // i k; case: (st) => A0 A1.
have r1 : 1 <= E (2%:R * B).
  by rewrite -[X in X <= _]E0; apply: E_le; apply: le_trans (spread ord0 ord0 ord0); rewrite subrr.
have ratio m j j' : A m j <= E (2%:R * B) * A m j'.
  rewrite /A /softmax mulrA ler_wpmul2r ?invr_ge0 ?sumr_ge0 // => [*|]; first exact: ltW.
  by rewrite -E_add E_le // -ler_subl_addr.
have -> : tanh B = (E (2%:R * B) - 1) / (E (2%:R * B) + 1).
  have -> : 2%:R * B = B + B by ring.
  have p1 : E B + E (- B) != 0 by rewrite gt_eqF // addr_gt0.
  have p2 : E B * E B + 1 != 0 by rewrite gt_eqF // addr_gt0 ?ltr01 // mulr_gt0.
  rewrite E_add /tanh; apply/eqP; rewrite eqr_div //; apply/eqP.
  move: (EN B); move: (E B) (E (- B)) => u v uv.
  have -> : (u - v) * (u * u + 1) = u * u * u + u - (u * v) * u - v by ring.
  have -> : (u * u - 1) * (u + v) = u * u * u + (u * v) * u - u - v by ring.
  by rewrite uv !mul1r.
by apply: two_rows.
Qed.

(* Causal: tau <= 1 - e^(-2B)/n *)
Definition causal := softmax (fun i j : 'I_n => (j <= i)%N).
Theorem tau_causal : (forall i j k : 'I_n, (j <= i)%N -> (k <= i)%N -> l i j - l i k <= 2%:R * B) ->
  stochastic causal /\ tau_le causal (1 - E (- (2%:R * B)) / n%:R).
Proof.
move=> spread; have st : stochastic causal by apply: softmax_stochastic => i; exists i.
split=> // i k; case: (st) => A0 A1.
pose lo := E (- (2%:R * B)) / n%:R.
have first m : lo <= causal m ord0.
  rewrite /causal /softmax /= /lo.
  have D : 0 < \sum_(j < n | (j <= m)%N) E (l m j).
    by rewrite (bigD1 ord0) //= ltr_paddr // sumr_ge0 // => *; exact: ltW.
  rewrite ler_pdivl_mulr // mulrAC ler_pdivr_mulr ?ltr0n // mulrC.
  apply: (@le_trans _ _ (\sum_(j < n) E (l m ord0))); last first.
    by rewrite sumr_const card_ord mulr_natr.
  rewrite big_mkcond mulr_suml; apply: ler_sum => j _; case: ifP => jm; last first.
    by rewrite mul0r ltW.
  by rewrite -E_add E_le // ler_subl_addl -ler_subl_addr spread.
have m0 j : `|causal i j - causal k j| =
    causal i j + causal k j - 2%:R * Num.min (causal i j) (causal k j).
  by move: (causal i j) (causal k j) => a b; case: (lerP a b) => H; ring.
rewrite (eq_bigr _ (fun j _ => m0 j)) sumrB big_split /= !A1 -mulr_sumr.
have -> : 2%:R * (1 - E (- (2%:R * B)) / n%:R) = 1 + 1 - 2%:R * lo by rewrite /lo; ring.
rewrite ler_add2l ler_opp2 ler_wpmul2l ?ler0n //.
rewrite (bigD1 ord0) //= -[lo]addr0; apply: ler_add; first by rewrite le_minr !first.
by apply: sumr_ge0 => j _; rewrite le_minr !A0.
Qed.
End Logits.

(* The hypotheses hold for uniform attention and W = -1, and for an exponential that is 1. *)
Section Instances.
Variable R : realFieldType.
Let VV : 1%:M *m 1%:M = 1%:M :> 'M[R]_1. Proof. exact: mulmx1. Qed.
Let h_range (l : nat) (j : 'I_1) : (forall g : 'I_1, (-1 : R) <= 0) /\ -1 <= \sum_(g < 1) (-1 : R).
Proof. by rewrite big_ord1; split=> // _; rewrite oppr_le0 ler01. Qed.
Definition features_instance (X : 'M[R]_(2, 1)) :=
  @features R 1 1 1 1%:M 1%:M (@attends R) (fun _ _ _ => -1) 0 VV X
    (fun _ _ => (even_stochastic R)) (fun _ _ => (even_tau R)) h_range (zero_range R).
Let E_add (x y : R) : (1 : R) = 1 * 1. Proof. by rewrite mulr1. Qed.
Definition tau_logits_instance := @tau_logits R 1 (fun=> 1) (fun=> ltr01) E_add (fun _ _ _ => lexx _).
Definition tau_causal_instance := @tau_causal R 1 (fun=> 1) (fun=> ltr01) E_add (fun _ _ _ => lexx _).
End Instances.
