(* Values at which the hypotheses of other files hold, so that they are not contradictory: two
   tokens over the algebraic numbers, attention that is uniform or exchanges them.  No axioms.    *)
From mathcomp Require Import all_ssreflect all_algebra all_field.
From mathcomp.algebra_tactics Require Import ring.
Require Import T1_blocks Powers.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Local Notation C := algCnumClosedField.
Theorem algC_archimedean : archimedean algCnumClosedField.
Proof.
by move=> x; exists (truncC `|x|).+1; case/andP: (truncC_itv (normr_ge0 x)).
Qed.

Lemma two_neq0 : (2%:R : C) != 0. Proof. by rewrite pnatr_eq0. Qed.
Lemma halves_make_1 : (2%:R^-1 + 2%:R^-1 : C) = 1. Proof. by rewrite -mulr2n -[LHS]mulr_natl mulfV ?two_neq0. Qed.

Lemma sum2 (F : 'I_(1 + 1) -> C) : \sum_i F i = F 0 + F 1.
Proof.
by rewrite big_ord_recl big_ord1; congr (_ + F _); apply/val_inj.
Qed.

Lemma root_mx11 (M : 'M[C]_(1 + 0)) x : root (char_poly M) x = (x == M 0 0).
Proof. by rewrite /char_poly det_mx11 !mxE eqxx mulr1n root_XsubC. Qed.
(* Attention that is uniform. *)
Definition uniform : 'M[C]_(1 + 1) := const_mx 2%:R^-1.
Definition halves : 'rV[C]_(1 + 1) := const_mx 2%:R^-1.
Definition first_token : 'M[C]_(1 + 1, 1) := delta_mx 0 0.
Lemma uniform1 : uniform *m e C (1 + 1) = e C (1 + 1).
Proof. by apply/matrixP=> i j; rewrite !mxE sum2 !mxE !mulr1 halves_make_1. Qed.
Lemma uniform_left : (e C (1 + 1))^T *m uniform = (e C (1 + 1))^T.
Proof. by apply/matrixP=> i j; rewrite !mxE sum2 !mxE !mul1r halves_make_1. Qed.
Lemma uniform_pi : halves *m uniform = halves.
Proof. by apply/matrixP=> i j; rewrite !mxE sum2 !mxE -mulrDr halves_make_1 mulr1. Qed.
Lemma halves1 : halves *m e C (1 + 1) = 1%:M.
Proof. by apply/matrixP=> i j; rewrite !ord1 !mxE sum2 !mxE !mulr1 halves_make_1. Qed.
Lemma half_gt0 : 0 < (2%:R^-1 : C). Proof. by rewrite invr_gt0 ltr0n. Qed.
Lemma half_le_uniform i j : 2%:R^-1 <= uniform i j. Proof. by rewrite mxE. Qed.
Lemma Bp_uniform : Bp uniform = 0.
Proof. by apply/matrixP=> i j; rewrite !mxE big_ord1 !mxE mul1r subrr. Qed.

(* Attention that exchanges the tokens: eigenvalues 1 and -1. *)
Definition swap : 'M[C]_(1 + 1) := \matrix_(i, j) (i != j)%:R.
Definition sign : 'cV[C]_(1 + 1) := \col_i (-1) ^+ i.
Lemma ord2 (i : 'I_(1 + 1)) : i = 0 \/ i = 1.
Proof. by case: i => -[|[|//]] p; [left | right]; apply/val_inj. Qed.
Lemma swap1 : swap *m e C (1 + 1) = e C (1 + 1).
Proof.
by apply/matrixP=> i j; rewrite !mxE sum2 !mxE; case: (ord2 i) => ->; rewrite /= !mulr1 ?add0r ?addr0.
Qed.
Lemma swap_char : char_poly swap = ('X - 1) * ('X + 1).
Proof.
rewrite (char_poly_quotient swap1); congr (_ * _).
rewrite /char_poly det_mx11 !mxE eqxx mulr1n big_ord1 !mxE /=.
by rewrite mulr1 sub0r polyCN opprK polyC1.
Qed.
Lemma swap_sign : swap *m sign = -1 *: sign.
Proof.
apply/matrixP=> i j; rewrite !mxE sum2 !mxE; case: (ord2 i) => ->; rewrite /= ?expr0 ?expr1; ring.
Qed.
Lemma sign_neq0 : sign != 0.
Proof. by apply/eqP => /matrixP/(_ 0 0)/eqP; rewrite !mxE expr0 oner_eq0. Qed.
Lemma swap_ge0 i j : 0 <= swap i j. Proof. by rewrite mxE ler0n. Qed.
Lemma minus1_neq1 : (-1 : C) != 1. Proof. by rewrite eq_sym -subr_eq0 opprK -[1 + 1]/(2%:R) two_neq0. Qed.
