(* Statements of arXiv 2401.04301 and 2312.06182, as read in the ledger, refuted by explicit rational
   matrices, in every ordered field.  The models are those of T1_blocks.  No axioms.               *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
Require Import T1_blocks.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Refutations.
Variable R : realFieldType.
Implicit Types (a b c x y : R) (L : nat).

Definition m22 a b c (d : R) : 'M[R]_2 :=
  \matrix_(i, j) (if i == 0 then if j == 0 then a else b else if j == 0 then c else d).
Definition col x y : 'M[R]_(2, 1) := \matrix_(i, _) (if i == 0 then x else y).
Definition num x : 'M[R]_1 := x%:M.

(* A softmax's A: positive, rows summing to 1. *)
Definition attention n (A : 'M[R]_n.+1) := (forall i j, 0 < A i j) /\ row_sums_one A.
Definition norm2 n d (X : 'M[R]_(n, d)) : R := \sum_i \sum_j X i j ^+ 2.
Definition HFC2 n d (X : 'M[R]_(n.+1, d)) : R := norm2 (HFC X).
Definition LFC2 n d (X : 'M[R]_(n.+1, d)) : R := norm2 (LFC X).
Definition eigenvalues_in n (H : 'M[R]_n) (S : R -> bool) := forall h, eigenvalue H h -> S h.

Lemma sum2 (V : zmodType) (F : 'I_2 -> V) : \sum_i F i = F 0 + F 1.
Proof. by rewrite !big_ord_recl big_ord0 addr0; congr (F _ + F _); apply: val_inj. Qed.
Lemma ind2 (Q : 'I_2 -> Prop) : Q 0 -> Q 1 -> forall i, Q i.
Proof. by move=> q0 q1 [[|[|//]] p]; [move: q0|move: q1]; congr Q; apply: val_inj. Qed.

Lemma HFC_entry d (X : 'M[R]_(2, d)) i j :
  HFC X i j = 2%:R^-1 * (if i == 0 then X 0 j - X 1 j else X 1 j - X 0 j).
Proof.
by rewrite mxE sum2 !mxE !big_ord1 !mxE; elim/ind2: i => /=; field.
Qed.
Lemma LFC_entry d (X : 'M[R]_(2, d)) i j : LFC X i j = 2%:R^-1 * (X 0 j + X 1 j).
Proof. by rewrite mxE sum2 !mxE !big_ord1 !mxE !mulr1 -mulrDr. Qed.
Lemma two_tokens_HFC d (X : 'M[R]_(2, d)) : HFC2 X = 2%:R^-1 * \sum_j (X 0 j - X 1 j) ^+ 2.
Proof.
rewrite /HFC2 /norm2 sum2 -big_split mulr_sumr /=.
by apply: eq_bigr => j _; rewrite !HFC_entry /=; field.
Qed.
Lemma two_tokens_LFC d (X : 'M[R]_(2, d)) : LFC2 X = 2%:R^-1 * \sum_j (X 0 j + X 1 j) ^+ 2.
Proof.
rewrite /LFC2 /norm2 sum2 -big_split mulr_sumr /=.
by apply: eq_bigr => j _; rewrite !LFC_entry; field.
Qed.

Lemma natS l : l.+1%:R = l%:R + 1 :> R. Proof. by rewrite -addn1 natrD. Qed.
Lemma half : 1 / 2%:R = 1 - 1 / 2%:R :> R. Proof. by field. Qed.
Lemma between k l : (0 < k < l)%N -> 0 < (k%:R / l%:R : R) < 1.
Proof.
move=> /andP[k0 kl]; have l0 : (0 : R) < l%:R by rewrite ltr0n (leq_ltn_trans _ kl).
apply/andP; split; first by rewrite divr_gt0 // ltr0n.
by rewrite ltr_pdivr_mulr // mul1r ltr_nat.
Qed.
Lemma minus k l : (0 < k < l)%N -> -1 <= - (k%:R / l%:R : R) < 0.
Proof. by move=> /between/andP[x0 x1]; rewrite ler_opp2 oppr_lt0 x0 ltW. Qed.
Lemma m22_attention k l k' l' a b c d : (0 < k < l)%N -> (0 < k' < l')%N ->
  a = k%:R / l%:R -> b = 1 - a -> c = 1 - d -> d = k'%:R / l'%:R -> attention (m22 a b c d).
Proof.
move=> /between/andP[x0 x1] /between/andP[y0 y1] -> -> -> ->; split.
  by elim/ind2; elim/ind2; rewrite !mxE //= subr_gt0.
by apply/matrixP; elim/ind2 => j; rewrite !mxE sum2 !mxE /=; ring.
Qed.
Lemma triangular a b c d h : b * c = 0 -> eigenvalue (m22 a b c d) h -> h = a \/ h = d.
Proof.
move=> bc /eigenvalueP[v /matrixP E v0].
have E0 : v 0 0 * a + v 0 1 * c = h * v 0 0 by have := E 0 0; rewrite !mxE sum2 !mxE.
have E1 : v 0 0 * b + v 0 1 * d = h * v 0 1 by have := E 0 1; rewrite !mxE sum2 !mxE.
have [x0|x0] := eqVneq (v 0 0) 0; have [y0|y0] := eqVneq (v 0 1) 0.
- by case/eqP: v0; apply/matrixP=> i; elim/ind2; rewrite ord1 mxE.
- by right; apply: (mulfI y0); rewrite mulrC -E1 x0 mul0r add0r mulrC.
- by left; apply: (mulfI x0); rewrite mulrC -E0 y0 mul0r addr0 mulrC.
- move/eqP: bc; rewrite mulf_eq0 => /orP[/eqP b0|/eqP c0].
    by right; apply: (mulfI y0); rewrite mulrC -E1 b0 mulr0 add0r mulrC.
  by left; apply: (mulfI x0); rewrite mulrC -E0 c0 mulr0 addr0 mulrC.
Qed.

(* The orbit, guessed and checked by one layer. *)
Lemma orbit n d (A : 'M[R]_n.+1) (W : 'M[R]_d) (F : nat -> 'M[R]_(n.+1, d)) L :
  (forall l, F l.+1 = F l + A *m F l *m W) -> tied A W L (F 0%N) = F L.
Proof. by move=> E; elim: L => //= L IH; rewrite IH E. Qed.
Lemma orbit2 d (A : 'M[R]_2) (W : 'M[R]_d) (F : nat -> 'M[R]_(2, d)) L :
  (forall l j, F l.+1 0 j = F l 0 j + \sum_k (A 0 0 * F l 0 k + A 0 1 * F l 1 k) * W k j) ->
  (forall l j, F l.+1 1 j = F l 1 j + \sum_k (A 1 0 * F l 0 k + A 1 1 * F l 1 k) * W k j) ->
  tied A W L (F 0%N) = F L.
Proof.
move=> E0 E1; apply: orbit => l; apply/matrixP; elim/ind2 => j; rewrite ?E0 ?E1 !mxE;
  by congr (_ + _); apply: eq_bigr => k _; rewrite mxE sum2.
Qed.

(* v1, control: eigenvalues of H in the closed [-1, 0] guarantee no oversmoothing. *)
Theorem v1_control : exists (A H X : 'M[R]_2),
  [/\ attention A, eigenvalues_in H (fun h => -1 <= h <= 0) &
      forall L, HFC2 (tied A H^T L X) = 2%:R /\ LFC2 (tied A H^T L X) = 2%:R * (L%:R ^+ 2 + 1)].
Proof.
exists (m22 (1/2%:R) (1/2%:R) (1/2%:R) (1/2%:R)), (m22 0 1 0 0), (m22 0 0 0 2%:R); split.
- by apply: (@m22_attention 1 2 1 2); rewrite // -?half.
- by move=> h /triangular; rewrite mulr0 => /(_ erefl)[] ->; rewrite lexx lerN10.
move=> L; pose F := fun l : nat => m22 l%:R 0 l%:R 2%:R.
rewrite (_ : m22 0 0 0 2%:R = F 0%N) // orbit2; last 2 first.
- by move=> l; elim/ind2; rewrite sum2 !mxE /= ?(natS l); field.
- by move=> l; elim/ind2; rewrite sum2 !mxE /= ?(natS l); field.
by rewrite two_tokens_HFC two_tokens_LFC !sum2 !mxE /=; split; field.
Qed.

Lemma spectrum2 a b c d h : b = 1 - a -> c = 1 - d -> eigenvalue (m22 a b c d) h ->
  h = 1 \/ h = a + d - 1.
Proof.
move=> -> -> /eigenvalueP[v /matrixP E v0].
have E0 : v 0 0 * a + v 0 1 * (1 - d) = h * v 0 0 by have := E 0 0; rewrite !mxE sum2 !mxE.
have E1 : v 0 0 * (1 - a) + v 0 1 * d = h * v 0 1 by have := E 0 1; rewrite !mxE sum2 !mxE.
have [s0|s0] := eqVneq (v 0 0 + v 0 1) 0; last first.
  by left; apply: (mulIf s0); rewrite mulrDr -E0 -E1; ring.
have F : v 0 1 = - v 0 0 by apply/eqP; rewrite -addr_eq0 addrC s0.
right; have x0 : v 0 0 != 0.
  by apply: contraNneq v0 => x0; apply/eqP/matrixP=> i; elim/ind2; rewrite ord1 mxE // F x0 oppr0.
by apply: (mulIf x0); rewrite -E0 F; ring.
Qed.
Lemma spectrum1 x h : eigenvalue (num x) h -> h = x.
Proof.
move=> /eigenvalueP[v E v0]; move: E; rewrite /num mul_mx_scalar => E.
have [k k0] : exists k, v 0 k != 0.
  apply/existsP; apply: contraNT v0 => /existsPn/= Z; apply/eqP/matrixP=> i k.
  by rewrite ord1 mxE; apply/eqP; move: (Z k); rewrite negbK.
by apply: (mulIf k0); move/matrixP: E => /(_ 0 k); rewrite !mxE.
Qed.

Ltac softmax k l k' l' := by apply: (@m22_attention k l k' l'); rewrite //; field.
(* field does not know a power of a numeral to a variable. *)
Ltac powers := repeat match goal with |- context [@GRing.exp _ ?x ?l] => is_var l;
  let y := fresh "p" in set y := (x ^+ l); move: y => y end.
Ltac step1 := by move=> l j; rewrite big_ord1 !mxE /= ?ord1 /= ?mulr1n ?exprS; powers; field.
Ltac step2 := by move=> l; elim/ind2; rewrite sum2 !mxE /= ?exprS; powers; field.
Ltac start1 := by apply/matrixP; elim/ind2 => j; rewrite !mxE /= ?expr0; field.
Ltac start2 := by apply/matrixP; elim/ind2; elim/ind2; rewrite !mxE /= ?expr0; field.

(* v1: H = -psi^2 with learnable psi ensures that there is none. *)
Theorem v1_psi : exists (A : 'M[R]_2) (psi : R) (X : 'M[R]_(2, 1)), attention A /\
  forall L, HFC2 (tied A (num (- psi ^+ 2)) L X) = 2%:R /\
            LFC2 (tied A (num (- psi ^+ 2)) L X) = 2%:R * 9%:R ^+ L.
Proof.
exists (m22 (1/2%:R) (1/2%:R) (1/2%:R) (1/2%:R)), 2%:R, (col 0 2%:R); split.
  softmax 1%N 2%N 1%N 2%N.
move=> L; pose F := fun l : nat => col ((- 3%:R) ^+ l - 1) ((- 3%:R) ^+ l + 1).
have -> : col 0 2%:R = F 0%N by start1.
rewrite orbit2; [| step1 | step1].
rewrite two_tokens_HFC two_tokens_LFC !big_ord1 !mxE /=.
have -> : 9%:R ^+ L = ((- 3%:R) ^+ L) ^+ 2 :> R by rewrite exprAC; congr (_ ^+ L); rewrite expr2; ring.
by powers; split; field.
Qed.

(* v1, Thm 3 for every X_0 with HFC and LFC not 0: consensus (2 against 5/4) dominates. *)
Theorem v1_thm3_every_state : exists (A : 'M[R]_2) (X : 'M[R]_(2, 1)),
  [/\ attention A, (forall a, eigenvalue A a -> a = 1 \/ `|1 + a| < `|1 + 1 : R|), LFC2 X != 0 &
      forall L, LFC2 (tied A (num 1) L X) != 0 /\
                HFC2 (tied A (num 1) L X) = 9%:R * LFC2 (tied A (num 1) L X)].
Proof.
exists (m22 (1/2%:R) (1/2%:R) (1/4%:R) (3%:R/4%:R)), (col 2%:R (-1)); split.
- softmax 1%N 2%N 3%N 4%N.
- move=> a /spectrum2[||->|->]; [by field | by field | by left | right].
  have -> : 1 + (1/2%:R + 3%:R/4%:R - 1) = 5%:R/4%:R :> R by field.
  rewrite ger0_norm ?divr_ge0 ?ler0n // ger0_norm ?addr_ge0 ?ler01 // -subr_gt0.
  by rewrite (_ : _ - _ = 3%:R/4%:R); [rewrite divr_gt0 ?ltr0n | field].
- rewrite two_tokens_LFC big_ord1 !mxE /= (_ : _ * _ = 1/2%:R); last by field.
  by rewrite mulf_neq0 ?invr_eq0 ?oner_eq0 ?pnatr_eq0.
move=> L; pose F := fun l : nat => col ((5%:R/4%:R) ^+ l * 2%:R) (- (5%:R/4%:R) ^+ l).
have -> : col 2%:R (-1) = F 0%N by start1.
rewrite orbit2; [| step1 | step1].
rewrite two_tokens_HFC two_tokens_LFC !big_ord1 !mxE /=; split; last by field.
rewrite (_ : _ * _ = ((5%:R/4%:R) ^+ L) ^+ 2 / 2%:R); last by field.
by rewrite mulf_neq0 ?invr_eq0 ?pnatr_eq0 // !expf_neq0 // mulf_neq0 ?invr_eq0 ?pnatr_eq0.
Qed.

(* v1, Thm 2 for every H: 2 dominates alone, and X_L / 2^L = L/2 grows. *)
Theorem v1_thm2_any_weights : exists A H X : 'M[R]_2,
  [/\ attention A, (forall h, eigenvalue H h -> h = 1), (forall a, eigenvalue A a -> a = 1 \/ a = 0) &
      forall L i, tied A H^T L X i 0 = 2%:R ^+ L * (L%:R / 2%:R)].
Proof.
exists (m22 (1/2%:R) (1/2%:R) (1/2%:R) (1/2%:R)), (m22 1 1 0 1), (m22 0 1 0 1); split.
- softmax 1%N 2%N 1%N 2%N.
- by move=> h /triangular; rewrite mulr0 => /(_ erefl)[].
- move=> a /spectrum2[||->|->]; [by field | by field | by left | by right; field].
move=> L i; pose F := fun l : nat => m22 (2%:R ^+ l * (l%:R / 2%:R)) (2%:R ^+ l) (2%:R ^+ l * (l%:R / 2%:R)) (2%:R ^+ l).
have -> : m22 0 1 0 1 = F 0%N by start2.
rewrite orbit2; first by elim/ind2: i; rewrite mxE.
all: by move=> l; elim/ind2; rewrite sum2 !mxE /= exprS ?(natS l); powers; field.
Qed.

(* v1, Thm 2 with -> read literally: X_L - 2^L (1, 1) has entries of size (3/2)^L. *)
Theorem v1_thm2_difference : exists (A : 'M[R]_2) (X : 'M[R]_(2, 1)), attention A /\
  forall L, tied A (num 1) L X 0 0 - 2%:R ^+ L = - (3%:R/2%:R) ^+ L /\
            tied A (num 1) L X 1 0 - 2%:R ^+ L = (3%:R/2%:R) ^+ L.
Proof.
exists (m22 (3%:R/4%:R) (1/4%:R) (1/4%:R) (3%:R/4%:R)), (col 0 2%:R); split.
  softmax 3%N 4%N 3%N 4%N.
move=> L; pose F := fun l : nat => col (2%:R ^+ l - (3%:R/2%:R) ^+ l) (2%:R ^+ l + (3%:R/2%:R) ^+ l).
have -> : col 0 2%:R = F 0%N by start1.
by rewrite orbit2; [rewrite !mxE /=; powers; split; ring | step1 | step1].
Qed.

(* 2312.06182: with residual, |lambda_2(A)| fixes no rate: 3/4 for h = 1, 3/2 for h = -1/2. *)
Theorem N_residual_gap : exists (A : 'M[R]_2) (X : 'M[R]_(2, 1)),
  [/\ attention A, (forall a, eigenvalue A a -> a = 1 \/ a = 1/2%:R),
      (forall L, HFC2 (tied A (num 1) L X) * 16%:R ^+ L = LFC2 (tied A (num 1) L X) * 9%:R ^+ L) &
      (forall L, HFC2 (tied A (num (- (1/2%:R))) L X) * 4%:R ^+ L =
                 LFC2 (tied A (num (- (1/2%:R))) L X) * 9%:R ^+ L)].
Proof.
exists (m22 (3%:R/4%:R) (1/4%:R) (1/4%:R) (3%:R/4%:R)), (col 0 2%:R); split.
- softmax 3%N 4%N 3%N 4%N.
- move=> a /spectrum2[||->|->]; [by field | by field | by left | by right; field].
- move=> L; pose F := fun l : nat => col (2%:R ^+ l - (3%:R/2%:R) ^+ l) (2%:R ^+ l + (3%:R/2%:R) ^+ l).
  have -> : col 0 2%:R = F 0%N by start1.
  rewrite orbit2; [| step1 | step1]; rewrite two_tokens_HFC two_tokens_LFC !big_ord1 !mxE /=.
  have -> : 16%:R ^+ L = (2%:R ^+ L) ^+ 4 :> R by rewrite exprAC; congr (_ ^+ L); ring.
  have -> : 9%:R ^+ L = (3%:R ^+ L) ^+ 2 :> R by rewrite exprAC; congr (_ ^+ L); ring.
  rewrite expr_div_n; have: 2%:R ^+ L != 0 :> R by rewrite expf_neq0 // pnatr_eq0.
  by powers => nz; field.
move=> L; pose F := fun l : nat =>
  col ((1/2%:R) ^+ l - (3%:R/4%:R) ^+ l) ((1/2%:R) ^+ l + (3%:R/4%:R) ^+ l).
have -> : col 0 2%:R = F 0%N by start1.
rewrite orbit2; [| step1 | step1]; rewrite two_tokens_HFC two_tokens_LFC !big_ord1 !mxE /=.
have E4 : 4%:R ^+ L = (2%:R ^+ L) ^+ 2 :> R by rewrite exprAC; congr (_ ^+ L); ring.
have -> : 9%:R ^+ L = (3%:R ^+ L) ^+ 2 :> R by rewrite exprAC; congr (_ ^+ L); ring.
rewrite !expr_div_n E4 expr1n; have: 2%:R ^+ L != 0 :> R by rewrite expf_neq0 // pnatr_eq0.
by powers => nz; field.
Qed.

(* v3: the clip to [0, 1] makes X oversmooth: clip(-1) = 0. *)
Theorem v3_clip_smoothing : exists (A : 'M[R]_2) (X : 'M[R]_(2, 1)), attention A /\
  forall L, tied A (num 0) L X = X /\ HFC2 X = 2%:R /\ LFC2 X = 8%:R.
Proof.
exists (m22 (1/2%:R) (1/2%:R) (1/2%:R) (1/2%:R)), (col 1 3%:R); split; first softmax 1%N 2%N 1%N 2%N.
move=> L; split; last by rewrite two_tokens_HFC two_tokens_LFC !big_ord1 !mxE /=; split; field.
by elim: L => //= L ->; rewrite /num raddf0 mulmx0 addr0.
Qed.

(* v3: eigenvalues of H in [-1, 0) prevent it for every X_0 with HFC and LFC not 0. *)
Theorem v3_control_every_state : exists A H X : 'M[R]_2,
  [/\ attention A, eigenvalues_in H (fun h => -1 <= h < 0), HFC2 X = 2%:R, LFC2 X = 2%:R &
      forall L, HFC2 (tied A H^T L X) * 9%:R ^+ L = LFC2 (tied A H^T L X) * 4%:R ^+ L].
Proof.
exists (m22 (3%:R/4%:R) (1/4%:R) (1/4%:R) (3%:R/4%:R)), (m22 (- (1/4%:R)) 0 0 (-1)), (m22 1 1 1 (-1)); split.
- softmax 3%N 4%N 3%N 4%N.
- move=> h /triangular; rewrite mulr0 => /(_ erefl)[] ->; last by rewrite lexx oppr_lt0 ltr01.
  exact: (@minus 1%N 4%N).
- by rewrite two_tokens_HFC sum2 !mxE /=; field.
- by rewrite two_tokens_LFC sum2 !mxE /=; field.
move=> L; pose F := fun l : nat =>
  m22 ((3%:R/4%:R) ^+ l) ((1/2%:R) ^+ l) ((3%:R/4%:R) ^+ l) (- (1/2%:R) ^+ l).
have -> : m22 1 1 1 (-1) = F 0%N by start2.
rewrite orbit2; [| step2 | step2]; rewrite two_tokens_HFC two_tokens_LFC !sum2 !mxE /=.
have -> : 9%:R ^+ L = (3%:R ^+ L) ^+ 2 :> R by rewrite exprAC; congr (_ ^+ L); ring.
have E4 : 4%:R ^+ L = (2%:R ^+ L) ^+ 2 :> R by rewrite exprAC; congr (_ ^+ L); ring.
rewrite !expr_div_n E4 expr1n; have: 2%:R ^+ L != 0 :> R by rewrite expf_neq0 // pnatr_eq0.
by powers => nz; field.
Qed.

(* v3: some eigenvalue of H above 0 suffices for oversmoothing (our reading). *)
Theorem v3_some_positive : exists A H X : 'M[R]_2,
  [/\ attention A, eigenvalue H 1 & forall L,
      HFC2 (tied A H^T L X) = 2%:R * (25%:R/4%:R) ^+ L /\ LFC2 (tied A H^T L X) = 4%:R * 4%:R ^+ L].
Proof.
exists (m22 (1/4%:R) (3%:R/4%:R) (3%:R/4%:R) (1/4%:R)), (m22 1 0 0 (- 3%:R)), (m22 1 0 1 2%:R); split.
- softmax 1%N 4%N 1%N 4%N.
- apply/eigenvalueP; exists (\row_j (j == 0)%:R).
    by apply/matrixP=> i; elim/ind2; rewrite !mxE sum2 !mxE /=; ring.
  by apply/eqP => /matrixP/(_ 0 0)/eqP; rewrite !mxE oner_eq0.
move=> L; pose F := fun l : nat => m22 (2%:R ^+ l) ((- 2%:R) ^+ l - (5%:R/2%:R) ^+ l)
  (2%:R ^+ l) ((- 2%:R) ^+ l + (5%:R/2%:R) ^+ l).
have -> : m22 1 0 1 2%:R = F 0%N by start2.
rewrite orbit2; [| step2 | step2]; rewrite two_tokens_HFC two_tokens_LFC !sum2 !mxE /=.
have E4 : 4%:R ^+ L = (2%:R ^+ L) ^+ 2 :> R by rewrite exprAC; congr (_ ^+ L); ring.
have E2 : ((- 2%:R) ^+ L) ^+ 2 = (2%:R ^+ L) ^+ 2 :> R by rewrite exprAC [RHS]exprAC; congr (_ ^+ L); ring.
have -> : (25%:R/4%:R) ^+ L = ((5%:R/2%:R) ^+ L) ^+ 2 :> R by rewrite exprAC; congr (_ ^+ L); field.
split; first by powers; field.
rewrite E4; apply: (@etrans _ _ ((2%:R : R) * (2%:R ^+ L) ^+ 2 + 2%:R * ((- 2%:R) ^+ L) ^+ 2)).
  by powers; field.
by rewrite E2; powers; ring.
Qed.

(* v3: input convergence is the strictest notion: here the tokens meet at angle pi. *)
Theorem v3_input_strictest : exists (A : 'M[R]_2) (X : 'M[R]_(2, 1)), attention A /\
  forall L, tied A (num (-1)) L X 0 0 = (1/2%:R) ^+ L /\ tied A (num (-1)) L X 1 0 = - (1/2%:R) ^+ L.
Proof.
exists (m22 (3%:R/4%:R) (1/4%:R) (1/4%:R) (3%:R/4%:R)), (col 1 (-1)); split; first softmax 3%N 4%N 3%N 4%N.
move=> L; pose F := fun l : nat => col ((1/2%:R) ^+ l) (- (1/2%:R) ^+ l).
have -> : col 1 (-1) = F 0%N by start1.
by rewrite orbit2; [rewrite !mxE | step1 | step1].
Qed.

(* 2312.06182: every layer increases similarity: here one layer takes the mean away. *)
Theorem N_every_layer : exists (A : 'M[R]_2) (X : 'M[R]_(2, 1)),
  [/\ attention A, HFC2 X = 32%:R, LFC2 X = 2%:R, HFC2 (A *m X) = 2%:R & LFC2 (A *m X) = 0].
Proof.
exists (m22 (1/2%:R) (1/2%:R) (1/4%:R) (3%:R/4%:R)), (col 5%:R (- 3%:R)); split.
  softmax 1%N 2%N 3%N 4%N.
all: by rewrite ?two_tokens_HFC ?two_tokens_LFC big_ord1 !mxE ?sum2 ?mxE /=; field.
Qed.

(* v1: without the residual every X_0 is smoothed. *)
Theorem v1_no_residual : exists (A : 'M[R]_2) (X : 'M[R]_(2, 1)), [/\ attention A, LFC2 X != 0 &
  forall L, iter L (mulmx A) X = (1/4%:R) ^+ L *: X /\ HFC2 X = 9%:R * LFC2 X].
Proof.
exists (m22 (1/2%:R) (1/2%:R) (1/4%:R) (3%:R/4%:R)), (col 2%:R (-1)); split.
- softmax 1%N 2%N 3%N 4%N.
- rewrite two_tokens_LFC big_ord1 !mxE /= (_ : _ * _ = 1/2%:R); last by field.
  by rewrite mulf_neq0 ?invr_eq0 ?oner_eq0 ?pnatr_eq0.
move=> L; split; last by rewrite two_tokens_HFC two_tokens_LFC !big_ord1 !mxE /=; field.
set X := col _ _; set A := m22 _ _ _ _; have AX : A *m X = (1/4%:R) *: X.
  by apply/matrixP; elim/ind2 => j; rewrite !mxE sum2 !mxE /=; field.
elim: L => [|L IH]; first by rewrite expr0 scale1r.
by rewrite iterS IH -scalemxAr AX scalerA -exprSr.
Qed.

(* 2312.06182: any partial removal of the mean stops the escalation. *)
Theorem N_remedy_partial : exists (A : 'M[R]_2) (tau : R) (X : 'M[R]_(2, 1)),
  [/\ attention A, 0 < tau < 1 &
   let after Y := (1%:M - tau *: J R 1) *m (Y + A *m Y *m num 2%:R) in
   forall L, HFC2 (iter L after X) = 2%:R * 4%:R ^+ L /\
             LFC2 (iter L after X) = 2%:R * (25%:R/4%:R) ^+ L].
Proof.
exists (m22 (3%:R/4%:R) (1/4%:R) (1/4%:R) (3%:R/4%:R)), (1/6%:R), (col 0 2%:R); split.
- softmax 3%N 4%N 3%N 4%N.
- by apply: (@between 1%N 6%N).
move=> after L; pose F := fun l : nat => col ((5%:R/2%:R) ^+ l - 2%:R ^+ l) ((5%:R/2%:R) ^+ l + 2%:R ^+ l).
have -> : iter L after (col 0 2%:R) = F L.
  { elim: L => [|L IH]; first by start1.
  rewrite iterS IH /after; apply/matrixP; elim/ind2 => j.
  all: by rewrite /F; do 8 rewrite ?mxE ?sum2 ?big_ord1; rewrite /= ?ord1 /= ?mulr1n ?exprS; powers; field. }
rewrite two_tokens_HFC two_tokens_LFC !big_ord1 !mxE /=.
have -> : 4%:R ^+ L = (2%:R ^+ L) ^+ 2 :> R by rewrite exprAC; congr (_ ^+ L); ring.
have -> : (25%:R/4%:R) ^+ L = ((5%:R/2%:R) ^+ L) ^+ 2 :> R by rewrite exprAC; congr (_ ^+ L); field.
by powers; split; field.
Qed.

(* v3: the clip to [-1, 0) in each layer, weights differing by layer. *)
Fixpoint untied n d (A : 'M[R]_n.+1) (W : nat -> 'M[R]_d) L (X0 : 'M[R]_(n.+1, d)) :=
  if L is l.+1 then untied A W l X0 + A *m untied A W l X0 *m W l else X0.
Theorem v3_clip_untied : exists (A : 'M[R]_2) (H : nat -> 'M[R]_2) (X : 'M[R]_2),
  [/\ attention A, (forall l, eigenvalues_in (H l) (fun h => -1 <= h < 0)) & forall k,
     HFC2 (untied A (fun l => (H l)^T) (k.+1).*2 X) = 2%:R /\
     LFC2 (untied A (fun l => (H l)^T) (k.+1).*2 X) = 34%:R * 16%:R ^+ k].
Proof.
pose H1 := m22 (- (1/2%:R)) 0 2%:R (-1); pose H2 := m22 (-1) 2%:R 0 (- (1/2%:R)).
exists (m22 (1/2%:R) (1/2%:R) (1/2%:R) (1/2%:R)), (fun l => if odd l then H2 else H1), (m22 2%:R 0 0 0); split.
- softmax 1%N 2%N 1%N 2%N.
- have D := @minus 1%N 2%N isT.
  have O : (-1 <= -1 :> R) && (-1 < 0 :> R) by rewrite lexx oppr_lt0 ltr01.
  by move=> l h; case: (odd l) => /triangular; rewrite ?mulr0 ?mul0r => /(_ erefl)[] ->.
move=> k; set A := m22 _ _ _ _ ; set W := fun l => _; set X := m22 _ _ _ _.
pose F k := m22 (4%:R * 4%:R ^+ k + 1) (4%:R ^+ k) (4%:R * 4%:R ^+ k - 1) (4%:R ^+ k).
pose two Y := let Z := Y + A *m Y *m H1^T in Z + A *m Z *m H2^T.
have E l : untied A W l.+1.*2 X = two (untied A W l.*2 X).
  rewrite doubleS /two /=; have -> : W (l.*2).+1 = H2^T by rewrite /W /= odd_double.
  by have -> : W l.*2 = H1^T by rewrite /W odd_double.
pose G k := m22 (2%:R * 4%:R ^+ k + 1) (8%:R * 4%:R ^+ k) (2%:R * 4%:R ^+ k - 1) (8%:R * 4%:R ^+ k).
(* One layer at a time: the entries of both at once took a quarter of a minute.                   *)
have FG j : F j + A *m F j *m H1^T = G j.
  by apply/matrixP; elim/ind2; elim/ind2; rewrite !mxE !sum2 !mxE !sum2 !mxE /=; powers; field.
have GF j : G j + A *m G j *m H2^T = F j.+1.
  by apply/matrixP; elim/ind2; elim/ind2; rewrite !mxE !sum2 !mxE !sum2 !mxE /= exprS; powers; field.
have X0 : X + A *m X *m H1^T = m22 (3%:R / 2%:R) 2%:R (- (1 / 2%:R)) 2%:R.
  by apply/matrixP; elim/ind2; elim/ind2; rewrite !mxE !sum2 !mxE !sum2 !mxE /=; field.
have -> : untied A W k.+1.*2 X = F k.
  elim: k => [|k IH]; rewrite E ?IH /two ?FG ?GF // X0.
  by apply/matrixP; elim/ind2; elim/ind2; rewrite !mxE !sum2 !mxE !sum2 !mxE /= ?expr0; field.
rewrite two_tokens_HFC two_tokens_LFC !sum2 !mxE /=.
have -> : 16%:R ^+ k = (4%:R ^+ k) ^+ 2 :> R by rewrite exprAC; congr (_ ^+ k); ring.
by powers; split; field.
Qed.
End Refutations.
