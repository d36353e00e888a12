(* More statements of the papers, as read in the ledger, refuted by explicit rational matrices of
   three or four tokens, in every ordered field.  No axioms.                                     *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
Require Import T1_blocks.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Three.
Variable R : realFieldType.
(* A softmax's A: positive, rows summing to 1. *)
Definition attention n (A : 'M[R]_n.+1) := (forall i j, 0 < A i j) /\ row_sums_one A.

Lemma sum3 (V : zmodType) (F : 'I_3 -> V) : \sum_i F i = F 0 + (F 1 + F (2%:R)).
Proof.
by rewrite !big_ord_recl big_ord0 addr0; congr (F _ + (F _ + F _)); apply: val_inj.
Qed.
Lemma ind3 (Q : 'I_3 -> Prop) : Q 0 -> Q 1 -> Q 2%:R -> forall i, Q i.
Proof.
by move=> q0 q1 q2 [[|[|[|//]]] p]; [move: q0|move: q1|move: q2]; congr Q; apply: val_inj.
Qed.
Definition m33 (a b c a' b' c' a'' b'' c'' : R) : 'M[R]_3 :=
  \matrix_(i, j) nth 0 (nth [::] [:: [:: a; b; c]; [:: a'; b'; c']; [:: a''; b''; c'']] i) j.

Local Notation q := (1 / 4%:R : R).
Local Notation h := (1 / 2%:R : R).
Definition circle := m33 q q h h q q q h q.
Definition defective := m33 h q q h q q q h q.
Definition first := m33 q h q q h q h q q.
Definition second := m33 q q h q h q q h q.

Lemma q0 : 0 < q. Proof. by rewrite divr_gt0 ?ltr01 ?ltr0n. Qed.
Lemma h0 : 0 < h. Proof. by rewrite divr_gt0 ?ltr01 ?ltr0n. Qed.
Ltac softmax3 := by split; [elim/ind3; elim/ind3; rewrite !mxE /= ?q0 ?h0 |
  apply/matrixP; elim/ind3 => j; rewrite !mxE sum3 !mxE /=; field].
Lemma circle_attention : attention circle. Proof. softmax3. Qed.
Lemma defective_attention : attention defective. Proof. softmax3. Qed.
Lemma first_attention : attention first. Proof. softmax3. Qed.
Lemma second_attention : attention second. Proof. softmax3. Qed.

(* Two of the three eigenvalues are not real. *)
Lemma not_real : exists A : 'M[R]_(1 + 2), attention A /\
  char_poly A = ('X - 1) * char_poly (Bp A) /\ forall x, ~~ root (char_poly (Bp A)) x.
Proof.
exists circle; split; first exact: circle_attention.
split; first by apply: char_poly_quotient; case: circle_attention.
move=> x; rewrite -eigenvalue_root_char; apply/negP => /eigenvalueP[v /matrixP E v0].
have S2 (F : 'I_2 -> R) : \sum_i F i = F 0 + F 1.
  by rewrite !big_ord_recl big_ord0 addr0; congr (F _ + F _); apply: val_inj.
have B00 : Bp circle 0 0 = 0 by rewrite !mxE big_ord1 !mxE /=; ring.
have B01 : Bp circle 0 1 = - q by rewrite !mxE big_ord1 !mxE /=; field.
have B10 : Bp circle 1 0 = q by rewrite !mxE big_ord1 !mxE /=; field.
have B11 : Bp circle 1 1 = - q by rewrite !mxE big_ord1 !mxE /=; field.
have E0 : v 0 1 * q = x * v 0 0.
  by have := E 0 0; rewrite [LHS]mxE S2 B00 B10 mulr0 add0r [RHS]mxE.
have E1 : - v 0 0 * q - v 0 1 * q = x * v 0 1.
  by have := E 0 1; rewrite [LHS]mxE S2 B01 B11 [RHS]mxE mulNr mulrN mulrN.
have D : ((x + 2%:R^-1 * q) ^+ 2 + 3%:R / 4%:R * q ^+ 2) * v 0 0 = 0.
  have -> : ((x + 2%:R^-1 * q) ^+ 2 + 3%:R / 4%:R * q ^+ 2) * v 0 0 =
      x * (x * v 0 0) + q * (x * v 0 0) + q ^+ 2 * v 0 0 by field.
  rewrite -E0 mulrA -E1; ring.
have p : 0 < (x + 2%:R^-1 * q) ^+ 2 + 3%:R / 4%:R * q ^+ 2.
  by rewrite ltr_paddl ?sqr_ge0 // mulr_gt0 ?divr_gt0 ?exprn_gt0 ?q0 ?ltr0n.
have z0 : v 0 0 = 0 by apply/eqP; move/eqP: D; rewrite mulf_eq0 (gt_eqF p).
have z1 : v 0 1 = 0.
  by apply/eqP; move/eqP: E0; rewrite z0 mulr0 mulf_eq0 (gt_eqF q0) orbF.
case/eqP: v0; apply/matrixP=> i j; rewrite ord1 mxE.
by case: j => [[|[|//]] pj]; [rewrite -z0 | rewrite -z1]; congr (v _ _); apply: val_inj.
Qed.

(* The eigenvalue 0 is defective: (A - 1) A != 0 although
   (A - 1) A^2 = 0, so A is not diagonalisable.                                                  *)
Lemma no_eigenbasis : exists A : 'M[R]_3, [/\ attention A, A *m A *m A = A *m A, A *m A != A &
  forall (r : 'rV[R]_3) (P : 'M[R]_3), P \in unitmx -> A <> P *m diag_mx r *m invmx P].
Proof.
have S2 : defective *m defective =
    m33 (7%:R / 16%:R) (5%:R / 16%:R) q (7%:R / 16%:R) (5%:R / 16%:R) q (7%:R / 16%:R) (5%:R / 16%:R) q.
  by apply/matrixP; elim/ind3; elim/ind3; rewrite !mxE sum3 !mxE /=; field.
have A3 : defective *m defective *m defective = defective *m defective.
  by rewrite S2; apply/matrixP; elim/ind3; elim/ind3; rewrite !mxE sum3 !mxE /=; field.
have A2 : defective *m defective != defective.
  apply/eqP => /matrixP/(_ 0 0) E.
  have E2 : (defective *m defective) 0 0 = 7%:R / 16%:R by rewrite !mxE sum3 !mxE /=; field.
  have E1 : defective 0 0 = h by rewrite !mxE.
  have : h - 7%:R / 16%:R = 0 by rewrite -E1 -E2 E subrr.
  have -> : h - 7%:R / 16%:R = 1 / 16%:R by field.
  by move/eqP; rewrite mulf_eq0 oner_eq0 invr_eq0 pnatr_eq0.
exists defective; split=> //; first exact: defective_attention.
move=> r P0 Pu E; case/eqP: A2; set D := diag_mx r in E.
have sq M : P0 *m M *m invmx P0 *m (P0 *m D *m invmx P0) = P0 *m (M *m D) *m invmx P0.
  by rewrite !mulmxA -[P0 *m M *m invmx P0 *m P0]mulmxA mulVmx // mulmx1.
have D3 : D *m D *m D = D *m D.
  have F : P0 *m (D *m D *m D) *m invmx P0 = P0 *m (D *m D) *m invmx P0.
    by rewrite -!sq -E.
  move/(congr1 (mulmx (invmx P0))): F; rewrite !mulmxA mulVmx // !mul1mx.
  by move/(congr1 (mulmxr P0)); rewrite /= -!mulmxA mulVmx // !mulmx1 !mulmxA.
have D2 : D *m D = D.
  apply/matrixP=> i j; rewrite /D mulmx_diag !mxE; case: (i == j); rewrite ?mulr0n // !mulr1n.
  have := congr1 (fun M : 'M_3 => M i i) D3; rewrite /D !mulmx_diag !mxE eqxx !mulr1n.
  have [->|n0] := eqVneq (r 0 i) 0; first by rewrite mulr0.
  by rewrite -[RHS]mulr1 => /(mulfI (mulf_neq0 n0 n0)) ->; rewrite mulr1.
by rewrite E sq D2.
Qed.

(* v1: the eigenvalues of softmax attention can be sorted, and A has a basis of eigenvectors. *)
Theorem v1_real_spectrum :
  (exists A : 'M[R]_(1 + 2), attention A /\
  char_poly A = ('X - 1) * char_poly (Bp A) /\ forall x, ~~ root (char_poly (Bp A)) x) /\
  (exists A : 'M[R]_3, [/\ attention A, A *m A *m A = A *m A, A *m A != A &
  forall (r : 'rV[R]_3) (P : 'M[R]_3), P \in unitmx -> A <> P *m diag_mx r *m invmx P]).
Proof. by split; [exact: not_real | exact: no_eigenbasis]. Qed.

(* 2312.06182, with A that differ by layer: similarity escalates at the rate of their |lambda_2|.
   Both have the eigenvalues 1 and 0 alone and make all tokens equal in two layers; in turn they
   shrink the differences by 1/16 every two layers.                                             *)
Definition equal_rows n (M : 'M[R]_n.+1) := forall i j, M i j = M 0 j.
Theorem N_changing : exists (A B : 'M[R]_3) (X : 'cV[R]_3),
  [/\ attention A, attention B, equal_rows (A *m A), equal_rows (B *m B) &
   forall k, iter k (fun Y => B *m (A *m Y)) X = const_mx 1 + (1 / 16%:R) ^+ k *: (X - const_mx 1) /\
             X != const_mx 1 /\ X - const_mx 1 = HFC X].
Proof.
pose V : 'cV[R]_3 := \col_i nth 0 [:: - 2%:R; 1; 1] i.
exists first, second, (const_mx 1 + V); split.
- exact: first_attention.
- exact: second_attention.
- by elim/ind3; elim/ind3 => //; rewrite !mxE !sum3 !mxE /=; field.
- by elim/ind3; elim/ind3 => //; rewrite !mxE !sum3 !mxE /=; field.
have -> : const_mx 1 + V - const_mx 1 = V by rewrite addrC addrA addNr add0r.
have one A : attention A -> A *m const_mx 1 = const_mx 1 :> 'cV[R]_3 by case.
have BA : second *m (first *m V) = (1 / 16%:R) *: V.
  by apply/matrixP => i j; rewrite ord1 {j}; elim/ind3: i; rewrite !mxE !sum3 !mxE !sum3 !mxE /=; field.
move=> k; split; last split.
- elim: k => [|k IH]; first by rewrite expr0 scale1r.
  rewrite iterS IH !mulmxDr (one _ first_attention) (one _ second_attention) -!scalemxAr BA.
  by rewrite scalerA exprSr.
- apply/eqP => /matrixP/(_ 1 0); rewrite !mxE /= => /eqP.
  by rewrite -subr_eq0 addrAC subrr add0r oner_eq0.
- rewrite /HFC mulmxDr [P _ _ *m const_mx 1]P_one add0r /P mulmxBl mul1mx.
  rewrite /J -scalemxAl -mulmxA [X in _ *m X](_ : _ = 0) ?mulmx0 ?scaler0 ?subr0 //.
  by apply/matrixP=> i j; rewrite !ord1 !mxE sum3 !mxE /=; ring.
Qed.
End Three.
