(* T1c (2)-(4): the quotient in an orthonormal basis Q of the vectors orthogonal to 1, its spectrum,
   and its rational form in the coordinates x_i - x_n; any number of tokens n + 1.  No axioms.    *)
From mathcomp Require Import all_ssreflect all_algebra.
Require Import T1_blocks.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Quotient.
Variables (R : realFieldType) (n : nat) (A : 'M[R]_(n + 1)) (Q : 'M[R]_(n + 1, n)).
Local Notation one := (const_mx 1 : 'cV[R]_(n + 1)).
Local Notation u := (const_mx 1 : 'cV[R]_n).
Definition J1 : 'M[R]_(n + 1) := (n + 1)%:R^-1 *: (one *m one^T).
Hypothesis A1 : A *m one = one.
Hypotheses (QQ : Q^T *m Q = 1%:M) (QP : Q *m Q^T = 1%:M - J1).
Definition B : 'M[R]_n := Q^T *m A *m Q.

Lemma n0 : (n + 1)%:R != 0 :> R. Proof. by rewrite pnatr_eq0 addn1. Qed.
Lemma oo : one^T *m one = (n + 1)%:R%:M.
Proof.
apply/matrixP=> i j; rewrite !ord1 !mxE eqxx mulr1n (eq_bigr (fun _ => 1)).
  by rewrite sumr_const card_ord.
by move=> k _; rewrite !mxE mulr1.
Qed.
Lemma J_one : J1 *m one = one.
Proof. by rewrite /J1 -scalemxAl -mulmxA oo mul_mx_scalar scalerA mulVf ?n0 // scale1r. Qed.
Lemma Q_one : Q^T *m one = 0.
Proof.
rewrite -[LHS]mul1mx -QQ -mulmxA (mulmxA Q) QP mulmxBl mul1mx J_one subrr.
by rewrite mulmx0.
Qed.
Lemma Q_J : Q^T *m J1 = 0.
Proof. by rewrite /J1 -scalemxAr mulmxA Q_one mul0mx scaler0. Qed.
Lemma one_Q : one^T *m Q = 0.
Proof. by apply: trmx_inj; rewrite trmx_mul trmxK trmx0 Q_one. Qed.

(* T1c (2) *)
Theorem quotient_layer d (X : 'M[R]_(n + 1, d)) (W : 'M[R]_d) :
  Q^T *m (X + A *m X *m W) = Q^T *m X + B *m (Q^T *m X) *m W /\
  (1%:M - J1) *m X = Q *m (Q^T *m X).
Proof.
split; last by rewrite mulmxA QP.
have AJ : A *m J1 = J1 by rewrite /J1 -scalemxAr mulmxA A1.
have E : Q^T *m A = B *m Q^T.
  rewrite /B -mulmxA QP mulmxBr mulmx1 -[Q^T *m A *m J1]mulmxA AJ Q_J.
  by rewrite subr0.
by rewrite mulmxDr !mulmxA E.
Qed.

(* T1d (3): Y = Q^T X and c = pi X move apart, and X is had from them by one static coupling. *)
Theorem decoupled d (X : 'M[R]_(n + 1, d)) (W : 'M[R]_d) (pi : 'rV[R]_(n + 1)) :
  pi *m A = pi -> pi *m one = 1%:M ->
  [/\ Q^T *m (X + A *m X *m W) = Q^T *m X + B *m (Q^T *m X) *m W,
      pi *m (X + A *m X *m W) = pi *m X *m (1%:M + W) &
      X = Q *m (Q^T *m X) + one *m (pi *m X + ((n + 1)%:R^-1 *: one^T - pi) *m (Q *m (Q^T *m X)))].
Proof.
move=> piA pi1; have [E F] := quotient_layer X W; split=> //.
  have -> : pi *m (X + A *m X *m W) = pi *m X + pi *m A *m X *m W by rewrite mulmxDr !mulmxA.
  by rewrite piA [RHS]mulmxDr mulmx1.
rewrite -F; have oJ : (n + 1)%:R^-1 *: one^T *m (1%:M - J1) = 0.
  rewrite mulmxBr mulmx1 /J1 -scalemxAr mulmxA -scalemxAl oo scale_scalar_mx mulVf ?n0 //.
  by rewrite mul1mx subrr.
have pJ : pi *m J1 = (n + 1)%:R^-1 *: one^T by rewrite /J1 -scalemxAr mulmxA pi1 mul1mx.
rewrite mulmxA; set nJ := _ *: one^T in oJ pJ *.
have -> : (nJ - pi) *m (1%:M - J1) = nJ - pi.
  by rewrite mulmxBl oJ sub0r mulmxBr mulmx1 pJ opprB.
have -> : pi *m X + (nJ - pi) *m X = nJ *m X by rewrite [(_ - pi) *m X]mulmxBl addrC subrK.
by rewrite mulmxBl mul1mx mulmxA /nJ -scalemxAr -/J1 subrK.
Qed.

(* T1c (3) *)
Theorem quotient_spectrum : char_poly A = char_poly B * ('X - 1).
Proof.
pose V := col_mx Q^T ((n + 1)%:R^-1 *: one^T); pose U := row_mx Q one.
have VU : V *m U = 1%:M.
  rewrite /V /U mul_col_row QQ Q_one -!scalemxAl one_Q oo scaler0.
  by rewrite scale_scalar_mx mulVf ?n0 // -scalar_mx_block.
rewrite -(char_poly_sim A VU) /V /U mul_col_mx mul_col_row -/B.
have -> : Q^T *m A *m one = 0 by rewrite -mulmxA A1 Q_one.
have -> : (n + 1)%:R^-1 *: one^T *m A *m one = 1%:M.
  by rewrite -mulmxA A1 -scalemxAl oo scale_scalar_mx mulVf ?n0.
rewrite /char_poly /char_poly_mx map_block_mx scalar_mx_block opp_block_mx add_block_mx map_mx0.
rewrite oppr0 addr0 det_lblock; congr (_ * _).
by rewrite map_scalar_mx /= -raddfB det_scalar1.
Qed.

(* T1c (4): B'_ij = A_ij - A_nj, i, j < n, in the coordinates x_i - x_n. *)
Definition B' : 'M[R]_n := ulsubmx A - u *m dlsubmx A.
Definition differences : 'M[R]_(n, n + 1) := row_mx 1%:M (- u).

Theorem quotient_rational : (forall i j, B' i j = A (lshift 1 i) (lshift 1 j) - A (rshift n 0) (lshift 1 j)) /\
  (forall d (X : 'M[R]_(n + 1, d)) (W : 'M[R]_d),
     differences *m (X + A *m X *m W) = differences *m X + B' *m (differences *m X) *m W) /\
  exists2 T : 'M[R]_n, T \in unitmx & T *m B = B' *m T.
Proof.
have one2 : one = col_mx u 1%:M.
  apply/matrixP=> i j; rewrite !mxE; case: splitP => k _; rewrite !mxE //.
  by rewrite !ord1 eqxx.
have [r1 r2] : ulsubmx A *m u + ursubmx A = u /\ dlsubmx A *m u + drsubmx A = 1%:M.
  have := A1; rewrite one2 -{1}[A]submxK mul_block_col !mulmx1.
  by case/eq_col_mx.
have DA : differences *m A = B' *m differences.
  rewrite /differences -{1}[A]submxK mul_row_block !mul1mx mul_mx_row mulmx1 !mulNmx.
  congr row_mx; rewrite mulmxN /B' mulmxBl -mulmxA.
  have -> : ursubmx A = u - ulsubmx A *m u by rewrite -{1}r1 addrAC subrr add0r.
  have -> : drsubmx A = 1%:M - dlsubmx A *m u by rewrite -r2 addrAC subrr add0r.
  by rewrite mulmxBr mulmx1 !opprB addrC addrA subrK.
have D1 : differences *m one = 0.
  by rewrite one2 /differences mul_row_col mul1mx mulNmx mulmx1 subrr.
split; first by move=> i j; rewrite !mxE big_ord1 !mxE mul1r.
split; first by move=> d X W; rewrite mulmxDr !mulmxA DA.
exists (differences *m Q).
  pose E : 'M[R]_(n + 1, n) := col_mx 1%:M 0.
  have ED : E *m differences = 1%:M - one *m row_mx 0 1%:M.
    rewrite /E /differences mul_col_row !mul1mx !mul0mx one2 mul_col_row !mulmx0 !mulmx1.
    rewrite scalar_mx_block opp_block_mx add_block_mx !subr0 add0r.
    by rewrite subrr.
  have L : (Q^T *m E) *m (differences *m Q) = 1%:M.
    rewrite -mulmxA (mulmxA E) ED mulmxBl mul1mx mulmxBr QQ !mulmxA Q_one !mul0mx.
    by rewrite subr0.
  by have [] := mulmx1_unit L.
have -> : B' *m (differences *m Q) = differences *m A *m Q by rewrite mulmxA DA.
have -> : differences *m Q *m B = differences *m (Q *m Q^T) *m A *m Q by rewrite /B !mulmxA.
rewrite QP mulmxBr mulmx1 (_ : differences *m J1 = 0) ?subr0 //.
by rewrite /J1 -scalemxAr mulmxA D1 mul0mx scaler0.
Qed.
End Quotient.

(* The hypotheses hold for uniform attention and the basis (1, -1)/sqrt 2. *)
Section Instances.
Variable R : rcfType.
Let root2 : R := (Num.sqrt 2%:R)^-1.
Let root2_sq : root2 * root2 = 2%:R^-1.
Proof. by rewrite /root2 -invfM -expr2 sqr_sqrtr ?ler0n. Qed.
Let halves_make_1 : (2%:R^-1 + 2%:R^-1 : R) = 1.
Proof. by rewrite -mulr2n -[LHS]mulr_natl mulfV ?pnatr_eq0. Qed.
Let ord2 (i : 'I_2) : i = 0 \/ i = 1.
Proof. by case: i => -[|[|//]] p; [left | right]; apply/val_inj. Qed.
Let even : 'M[R]_(1 + 1) := const_mx 2%:R^-1.
Let even1 : even *m (const_mx 1 : 'cV[R]_(1 + 1)) = const_mx 1.
Proof. by apply/matrixP=> i j; rewrite !mxE big_ord_recl big_ord1 !mxE !mulr1 halves_make_1. Qed.
Definition basis : 'M[R]_(1 + 1, 1) := \col_i ((-1) ^+ i * root2).
Let QQ : basis^T *m basis = 1%:M.
Proof.
apply/matrixP=> i j; rewrite !ord1 !mxE big_ord_recl big_ord1 !mxE /= expr0 expr1 mul1r mulN1r.
by rewrite mulrNN root2_sq halves_make_1.
Qed.
Let QP : basis *m basis^T = 1%:M - J1 R 1.
Proof.
apply/matrixP=> i j; rewrite !mxE !big_ord1 !mxE mulrACA root2_sq mulr1.
case: (ord2 i) => ->; case: (ord2 j) => ->; rewrite /= ?expr0 ?expr1 ?mulr1 ?mul1r ?mulrNN ?mulr1;
  by rewrite ?mulN1r ?mul1r ?sub0r // -[X in X - _]halves_make_1 addrK.
Qed.
Definition decoupled_instance := @decoupled R 1 even basis even1 QQ QP.
Definition quotient_layer_instance := @quotient_layer R 1 even basis even1 QQ QP.
Definition quotient_rational_instance := @quotient_rational R 1 even basis even1 QQ QP.
Definition quotient_spectrum_instance := @quotient_spectrum R 1 even basis even1 QQ QP.
End Instances.
