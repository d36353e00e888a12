(* T1f (7): attention with an eigenvector of mean 0 is rare, by the rows 1^T A^k; of two tokens
   exactly the doubly stochastic A have one.  No axioms.                                         *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
Require Import T1_blocks.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Mean0.
Variable C : numClosedFieldType.
Definition mean_0 n (A : 'M[C]_n.+1) := exists a (v : 'cV[C]_n.+1),
  [/\ v != 0, A *m v = a *: v & (e C n.+1)^T *m v = 0].
Definition krylov (R : comRingType) n (A : 'M[R]_n.+1) : 'M[R]_n.+1 :=
  \matrix_(i, j) \sum_k (A ^+ i) k j.

Lemma krylov_mul (R : comRingType) n (A : 'M[R]_n.+1) (v : 'cV[R]_n.+1) i :
  (krylov A *m v) i 0 = \sum_k (A ^+ i *m v) k 0.
Proof.
rewrite mxE; under [LHS]eq_bigr do rewrite mxE mulr_suml.
by rewrite exchange_big; apply: eq_bigr => k _; rewrite mxE.
Qed.

Lemma krylov_mean_0 n (A : 'M[C]_n.+1) : mean_0 A -> \det (krylov A) = 0.
Proof.
move=> [a [v [v0 vA ov]]]; apply/eqP; rewrite -det_tr; apply/det0P; exists v^T.
  by rewrite -(inj_eq (@trmx_inj _ _ _)) trmxK trmx0.
rewrite -trmx_mul (_ : krylov A *m v = 0) ?trmx0 //; apply/matrixP=> i j; rewrite ord1 krylov_mul mxE.
have -> : A ^+ i *m v = a ^+ i *: v.
  elim: (i : nat) => [|k IH]; first by rewrite expr0 scale1r mul1mx.
  by rewrite exprS -mulmxA IH -scalemxAr vA scalerA exprSr.
have S : \sum_k v k 0 = 0.
  transitivity (((e C n.+1)^T *m v) 0 0); last by rewrite ov mxE.
  by rewrite mxE; apply: eq_bigr => k _; rewrite !mxE mul1r.
by under eq_bigr do rewrite mxE; rewrite -mulr_sumr S mulr0.
Qed.

(* Every token attends to the one before it. *)
Definition chain n : 'M[C]_n.+1 := \matrix_(i, j) ((j : nat) == (i : nat).-1)%:R.
Lemma chain_power n k (v : 'cV[C]_n.+1) i : (chain n ^+ k *m v) i 0 = v (inord (i - k)) 0.
Proof.
elim: k i => [|k IH] i; first by rewrite expr0 mul1mx subn0 inord_val.
rewrite exprS -mulmxA mxE (bigD1 (inord i.-1)) //= big1 => [|j ne].
  have lt : (i.-1 < n.+1)%N by apply: leq_ltn_trans (leq_pred _) (ltn_ord i).
  rewrite mxE inordK // eqxx mul1r addr0 IH inordK //; congr (v (inord _) 0).
  by rewrite -subn1 subnAC subn1 -subnS.
rewrite mxE (_ : _ == _ = false) ?mul0r //; apply: contraNF ne => /eqP E.
by apply/eqP; rewrite -E inord_val.
Qed.
Lemma chain_rows n : chain n *m e C n.+1 = e C n.+1.
Proof.
apply/matrixP=> i j; rewrite ord1; have := chain_power 1 (e C n.+1) i.
by rewrite expr1 => ->; rewrite !mxE.
Qed.
Lemma chain_det n : \det (krylov (chain n)) != 0.
Proof.
rewrite -det_tr; apply/negP => /det0P[x x0 Kx].
have {}Kx : krylov (chain n) *m x^T = 0 by rewrite -[krylov _]trmxK -trmx_mul Kx trmx0.
case/eqP: x0; have Z : forall m (j : 'I_n.+1), (j < m)%N -> x 0 j = 0; last first.
  by apply/rowP => j; rewrite (Z n.+1) ?ltn_ord // mxE.
elim=> // m IH j; rewrite ltnS leq_eqVlt => /orP[/eqP jm|]; last exact: IH.
have := congr1 (fun M : 'cV_n.+1 => M (inord (n - j)) 0) Kx; rewrite krylov_mul mxE.
rewrite inordK; last by rewrite ltnS leq_subr.
under eq_bigr do rewrite chain_power mxE.
rewrite (bigID (fun i : 'I_n.+1 => i - (n - j) == j)%N) /= [X in _ + X]big1 ?addr0 => [|i ne]; last first.
  apply: IH; rewrite inordK; last by apply: leq_ltn_trans (leq_subr _ _) (ltn_ord i).
  rewrite -jm ltn_neqAle ne leq_subLR subnK /=; last by rewrite -ltnS ltn_ord.
  by rewrite -ltnS ltn_ord.
rewrite (eq_bigr (fun=> x 0 j)) => [|i /eqP->]; last by rewrite inord_val.
rewrite sumr_const -mulr_natl => /eqP; rewrite mulf_eq0 pnatr_eq0 => /orP[|/eqP//].
rewrite -leqn0 leqNgt; case/negP; apply/card_gt0P; exists ord_max.
by rewrite unfold_in; apply/eqP; apply: subKn; rewrite -ltnS ltn_ord.
Qed.

(* Through the row-stochastic `chain n` every line meets the A that have an eigenvector of mean 0 in
   finitely many points: these A are a null set.                                                *)
Theorem mean_0_rare n : chain n *m e C n.+1 = e C n.+1 /\ forall A : 'M[C]_n.+1,
  exists2 p : {poly C}, p != 0 & forall t, mean_0 (chain n + t *: (A - chain n)) -> root p t.
Proof.
split=> [|A]; first exact: chain_rows.
pose M : 'M[{poly C}]_n.+1 := map_mx polyC (chain n) + 'X *: map_mx polyC (A - chain n).
have E t : (\det (krylov M)).[t] = \det (krylov (chain n + t *: (A - chain n))).
  rewrite -horner_evalE -det_map_mx; congr (\det _); apply/matrixP=> i j; rewrite !mxE rmorph_sum.
  apply: eq_bigr => k _ /=.
  have -> : chain n + t *: (A - chain n) = map_mx (horner_eval t) M.
    by apply/matrixP=> r c; rewrite !mxE /horner_eval !hornerE.
  by rewrite -rmorphX [RHS]mxE.
exists (\det (krylov M)).
  apply: contraNneq (chain_det n) => Z; have := E 0.
  by rewrite scale0r addr0 Z horner0 => <-.
by move=> t /krylov_mean_0 Z; rewrite rootE E Z.
Qed.

(* Of two tokens exactly the doubly stochastic A have one. *)
Theorem mean_0_two_tokens (A : 'M[C]_2) : A *m e C 2 = e C 2 ->
  (mean_0 A <-> (e C 2)^T *m A = (e C 2)^T).
Proof.
have sum2 (F : 'I_2 -> C) : \sum_i F i = F 0 + F 1.
  by rewrite !big_ord_recl big_ord0 addr0; congr (F _ + F _); apply: val_inj.
have ind2 (Q : 'I_2 -> Prop) : Q 0 -> Q 1 -> forall i, Q i.
  by move=> q0 q1 [[|[|//]] p]; [move: q0|move: q1]; congr Q; apply: val_inj.
move=> A1; have r i : A i 1 = 1 - A i 0.
  have := congr1 (fun M : 'cV_2 => M i 0) A1; rewrite !mxE sum2 !mxE !mulr1 => <-.
  by rewrite addrAC subrr add0r.
split=> [[a [v [v0 vA ov]]]|oA].
  have S : v 1 0 = - v 0 0.
    have := congr1 (fun M : 'M_1 => M 0 0) ov; rewrite !mxE sum2 !mxE !mul1r => /eqP.
    by rewrite addr_eq0 => /eqP->; rewrite opprK.
  have x0 : v 0 0 != 0.
    apply: contraNneq v0 => Z; apply/eqP/matrixP; elim/ind2 => j; rewrite ord1 mxE //.
    by rewrite S Z oppr0.
  have R i : (A i 0 - A i 1) * v 0 0 = a * v i 0.
    by have := congr1 (fun M : 'cV_2 => M i 0) vA; rewrite !mxE sum2 S mulrBl mulrN.
  have D : A 0 0 - A 0 1 = - (A 1 0 - A 1 1).
    by apply: (mulIf x0); rewrite mulNr !R S mulrN opprK.
  apply/matrixP=> i; rewrite ord1; elim/ind2; rewrite mxE sum2 !mxE !mul1r.
    rewrite !r in D; have : 2%:R * (A 0 0 + A 1 0 - 1) = 0.
      have -> : 2%:R * (A 0 0 + A 1 0 - 1) = A 0 0 - (1 - A 0 0) + (A 1 0 - (1 - A 1 0)) by ring.
      by rewrite D addNr.
    by move/eqP; rewrite mulf_eq0 pnatr_eq0 /= subr_eq0 => /eqP.
  rewrite !r; rewrite !r in D; have : 2%:R * (1 - A 0 0 + (1 - A 1 0) - 1) = 0.
    have -> : 2%:R * (1 - A 0 0 + (1 - A 1 0) - 1) =
      - (A 0 0 - (1 - A 0 0) + (A 1 0 - (1 - A 1 0))) by ring.
    by rewrite D addNr oppr0.
  by move/eqP; rewrite mulf_eq0 pnatr_eq0 /= subr_eq0 => /eqP.
have c : A 1 0 = 1 - A 0 0.
  have := congr1 (fun M : 'rV_2 => M 0 0) oA; rewrite !mxE sum2 !mxE !mul1r => <-.
  by rewrite addrAC subrr add0r.
exists (A 0 0 - A 0 1), (\col_i (if i == 0 then 1 else -1)); split.
- by apply/eqP => /matrixP/(_ 0 0)/eqP; rewrite !mxE /= oner_eq0.
- apply/matrixP; elim/ind2 => j; rewrite !mxE sum2 !mxE /= ?r ?c; ring.
- by apply/matrixP=> i j; rewrite !mxE sum2 !mxE /= !mulr1 ?mulrN1 ?subrr.
Qed.
End Mean0.
