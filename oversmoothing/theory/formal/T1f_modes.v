(* T1f over the complex numbers, for any number of tokens and features: modes without consensus, the
   floor and that it is attained, the limit for one dominant mode, eigenvectors of mean 0.  No axioms. *)
From mathcomp Require Import all_ssreflect all_algebra all_field.
From mathcomp.algebra_tactics Require Import ring.
Require Import TwoTokens T1_blocks T1a_spectrum Powers Dynamics Norms Singular T4a_smoothing Verdicts.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Lemma normF_gt0 (C : numClosedFieldType) m k (M : 'M[C]_(m, k)) : M != 0 -> 0 < normF M.
Proof.
move=> M0; rewrite lt_def normF_ge0 andbT; apply: contraNneq M0 => E; apply/eqP/matrixP=> i j.
rewrite mxE; apply/eqP; rewrite -normr_eq0; apply/eqP/le_anti.
by rewrite normr_ge0 andbT -E normF_entry.
Qed.

Section NoConsensus.
Variables (C : numClosedFieldType) (n d : nat) (A : 'M[C]_(1 + n)) (pi : 'rV[C]_(1 + n)).
Local Notation one := (e C (1 + n)).
Hypotheses (piA : pi *m A = pi) (pi1 : pi *m one = 1%:M).
Implicit Types (X : 'M[C]_(1 + n, d)).

(* (2): generalised eigenvectors for a != 1, and so states built of them, have pi X = 0; so have
   their real parts, where pi is real.                                                           *)
Theorem mode_no_consensus a k X : a != 1 -> iter k (mulmx (A - a%:M)) X = 0 ->
  pi *m X = 0 /\ ((forall i, pi 0 i \is Num.real) -> pi *m map_mx (fun x => 'Re x) X = 0).
Proof.
move=> a1 Z; have E : pi *m X = 0.
  have : (1 - a) ^+ k *: (pi *m X) = 0.
    suff <- : pi *m iter k (mulmx (A - a%:M)) X = (1 - a) ^+ k *: (pi *m X) by rewrite Z mulmx0.
    elim: k {Z} => [|k IH]; first by rewrite expr0 scale1r.
    rewrite iterS mulmxA mulmxBr piA mul_mx_scalar mulmxBl -scalemxAl IH.
    by rewrite scalerA -scalerBl exprS; congr (_ *: _); ring.
  move/eqP; rewrite scaler_eq0 expf_eq0 subr_eq0 eq_sym (negbTE a1) andbF.
  by move/eqP.
split=> // pir; apply/matrixP=> i j; rewrite !mxE ord1.
rewrite -[RHS](_ : 'Re ((pi *m X) 0 j) = 0); last by rewrite E mxE raddf0.
rewrite mxE raddf_sum; apply: eq_bigr => l _ /=; rewrite !mxE.
by rewrite ReMl.
Qed.

Lemma HFC_no_consensus X : pi *m X = 0 -> HFC X = 0 -> X = 0.
Proof.
move=> cX HX; have m0 : mean X = 0 by rewrite (coupling X pi1) cX HX mulmx0 addr0.
by rewrite [X]HFC_LFC HX /LFC m0 mulmx0 addr0.
Qed.
Lemma LFC_normF X : normF (LFC X) = sqrtC (1 + n)%:R * normF (mean X).
Proof. by rewrite /normF LFC_norm sqrtCM ?nnegrE ?ler0n ?norm2_ge0. Qed.

(* (1) and (2): the floor for every state without consensus; HFC/LFC is infinite iff 1^T X = 0. *)
Theorem floor X : X != 0 -> pi *m X = 0 -> [/\ 0 < normF (HFC X),
  normF (LFC X) <= sqrtC (1 + n)%:R * delta pi * normF (HFC X) & LFC X = 0 <-> one^T *m X = 0].
Proof.
move=> X0 cX; split.
- apply: normF_gt0; apply: contraNneq X0 => /(HFC_no_consensus cX) E; exact/eqP.
- rewrite LFC_normF -mulrA ler_wpmul2l ?sqrtC_ge0 ?ler0n //.
  rewrite (coupling X pi1) cX add0r.
  rewrite -ler_sqr ?nnegrE ?mulr_ge0 ?normF_ge0 // exprMn !normF_sqr.
  exact: norm2_mul.
split=> E; last by rewrite /LFC /mean E scaler0 mulmx0.
have : one^T *m LFC X = 0 by rewrite E mulmx0.
rewrite /LFC mulmxA one_one mul_scalar_mx /mean scalerA mulfV ?scale1r //.
exact: nz.
Qed.
End NoConsensus.

Section Delta.
Variables (C : numClosedFieldType) (n : nat) (pi : 'rV[C]_(1 + n)).
Local Notation one := (e C (1 + n)).
Hypothesis pi1 : pi *m one = 1%:M.
Definition q : 'rV[C]_(1 + n) := pi - (1 + n)%:R^-1 *: one^T.

Lemma delta_q : delta pi = normF q.
Proof.
rewrite /delta /normF; congr sqrtC; apply: eq_bigr => i _; apply: eq_bigr => j _.
by rewrite !mxE distrC.
Qed.
Lemma q_one : q *m one = 0.
Proof. by rewrite mulmxBl -scalemxAl one_one scale_scalar_mx mulVf ?nz // pi1 subrr. Qed.
Lemma q_norm : q *m adj q = (delta pi ^+ 2)%:M.
Proof.
rewrite [LHS]mx11_scalar delta_q normF_sqr -norm2_adjE -[in RHS]norm2_adj.
by rewrite adjK.
Qed.
Lemma sum_pi : \sum_i pi 0 i = 1.
Proof.
have := pi1 => /matrixP/(_ 0 0); rewrite !mxE eqxx mulr1n => <-.
by apply: eq_bigr => i _; rewrite mxE mulr1.
Qed.

(* (1): the floor exceeds 1/sqrt(n - 1). *)
Theorem delta_bound : (0 < n)%N -> (forall i, 0 < pi 0 i) -> sqrtC (1 + n)%:R * delta pi < sqrtC n%:R.
Proof.
move=> n0 pos; have m0 : 0 < (1 + n)%:R :> C by rewrite ltr0n.
have sq : norm2 q = \sum_i pi 0 i ^+ 2 - (1 + n)%:R^-1.
  rewrite /norm2 big_ord1; transitivity (\sum_i (pi 0 i ^+ 2 - 2%:R / (1 + n)%:R * pi 0 i + (1 + n)%:R^-1 ^+ 2)).
    apply: eq_bigr => i _; rewrite !mxE mulr1 real_normK; first by move: (_%:R^-1) (pi 0 i) => k x; ring.
    by rewrite rpredB ?gtr0_real ?invr_gt0.
  rewrite big_split sumrB -mulr_sumr sum_pi sumr_const card_ord /= -[X in _ + X]mulr_natl.
  have : (1 + n)%:R * (1 + n)%:R^-1 = 1 :> C by rewrite mulfV ?gt_eqF.
  move: (1 + n)%:R (\sum_i pi 0 i ^+ 2) => N s Nk.
  by rewrite expr2 mulrA Nk; move: (N^-1) => k; ring.
have lt1 : \sum_i pi 0 i ^+ 2 < 1.
  have le i : pi 0 i < 1.
    have [k ki] : exists k, k != i.
      have: (0 < #|predC1 i|)%N by rewrite cardC1 card_ord.
      by case/card_gt0P => k; rewrite inE => ki; exists k.
    rewrite -sum_pi (bigD1 i) //= ltr_addl (bigD1 k) //= ltr_paddr //.
    by apply: sumr_ge0 => l _; exact: ltW.
  rewrite -[X in _ < X]sum_pi (bigD1 0) //= [X in _ < X](bigD1 0) //=; apply: ltr_le_add.
    by rewrite expr2 gtr_pmulr.
  by apply: ler_sum => i _; rewrite expr2 ger_pmulr // ltW.
rewrite delta_q /normF -sqrtCM ?nnegrE ?ler0n ?norm2_ge0 // ltr_sqrtC ?nnegrE ?mulr_ge0 ?ler0n ?norm2_ge0 //.
rewrite sq mulrBr mulfV ?gt_eqF // natrD [1%:R + _]addrC ltr_subl_addr -[X in _ < X]mulr1.
by rewrite ltr_pmul2l // -natrD addnC.
Qed.

(* (3): the floor is attained wherever A is not doubly stochastic, with any number of features. *)
Theorem floor_attained d (A : 'M[C]_(1 + n)) (u : 'rV[C]_d) : pi *m A = pi -> one^T *m A != one^T ->
  u != 0 -> exists X : 'M[C]_(1 + n, d), [/\ X != 0, pi *m X = 0, 0 < normF (HFC X) &
  normF (LFC X) = sqrtC (1 + n)%:R * delta pi * normF (HFC X)].
Proof.
move=> piA nd u0.
have q0 : q != 0.
  apply: contraNneq nd => E; have F : pi = (1 + n)%:R^-1 *: one^T.
    by apply/eqP; rewrite -subr_eq0; apply/eqP.
  have -> : one^T = (1 + n)%:R *: pi by rewrite F scalerA mulfV ?nz // scale1r.
  by rewrite -scalemxAl piA.
have D0 : 0 < delta pi by rewrite delta_q normF_gt0.
pose s := delta pi ^- 2; pose v : 'cV[C]_(1 + n) := one - s *: adj q.
have oq : one^T *m adj q = 0.
  have -> : one^T = adj one by apply/matrixP=> i j; rewrite !mxE conjC1.
  by rewrite -adj_mul q_one; apply/matrixP=> i j; rewrite !mxE conjC0.
have ov : one^T *m v = (1 + n)%:R%:M by rewrite mulmxBr -scalemxAr oq scaler0 subr0 one_one.
have piv : pi *m v = 0.
  rewrite mulmxBr pi1 -scalemxAr (_ : pi = q + (1 + n)%:R^-1 *: one^T); last by rewrite subrK.
  rewrite mulmxDl q_norm -scalemxAl oq scaler0 addr0 scale_scalar_mx mulVf ?subrr //.
  by rewrite expf_neq0 ?gt_eqF.
have mv : mean (v *m u) = u.
  by rewrite /mean mulmxA ov mul_scalar_mx scalerA mulVf ?nz // scale1r.
have HX : HFC (v *m u) = - s *: (adj q *m u).
  apply: (addIr (LFC (v *m u))); rewrite -HFC_LFC /LFC mv.
  by rewrite {1}/v mulmxBl -scalemxAl addrC scaleNr.
have X0 : v *m u != 0.
  apply: contraNneq u0 => E; rewrite -mv E /mean mulmx0 scaler0; exact/eqP.
have cX : pi *m (v *m u) = 0 by rewrite mulmxA piv mul0mx.
exists (v *m u); split=> //; first by have [] := floor pi1 X0 cX.
rewrite LFC_normF mv HX -mulrA; congr (_ * _).
have outer (x : 'cV[C]_(1 + n)) : normF (x *m u) = normF x * normF u.
  rewrite /normF -sqrtCM ?nnegrE ?norm2_ge0 //; congr sqrtC; rewrite /norm2 mulr_suml.
  apply: eq_bigr => i _; rewrite !big_ord1 mulr_sumr; apply: eq_bigr => j _.
  by rewrite mxE big_ord1 normrM exprMn.
rewrite scalemxAl outer (_ : normF (- s *: adj q) = s * delta pi).
  have -> : delta pi * (s * delta pi * normF u) = s * delta pi ^+ 2 * normF u by ring.
  by rewrite /s mulVf ?mul1r // expf_neq0 ?gt_eqF.
rewrite delta_q -[normF q]/(sqrtC (norm2 q)) -norm2_adjE -/(normF (adj q)).
have s0 : 0 <= s by rewrite invr_ge0 exprn_ge0 // ltW.
rewrite -[s in RHS]ger0_norm // -normrN /normF -[`|_|]sqrCK // -sqrtCM ?nnegrE ?exprn_ge0 ?norm2_ge0 //.
congr sqrtC; rewrite /norm2 mulr_sumr; apply: eq_bigr => i _; rewrite !big_ord1.
by rewrite mxE normrM exprMn.
Qed.
End Delta.

(* At these values the hypotheses hold. *)
Definition mode_no_consensus_instance := @mode_no_consensus algCnumClosedField 1 1 uniform halves uniform_pi.
Definition floor_instance := @floor algCnumClosedField 1 1 halves halves1.
Definition delta_bound_instance := @delta_bound algCnumClosedField 1 halves halves1.
Definition floor_attained_instance := @floor_attained algCnumClosedField 1 halves halves1.
