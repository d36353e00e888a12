(* Norms of a state, its mean and its differences, the layer on them, and the cosine.  No axioms. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
Require Import T1_blocks T1a_spectrum Powers Dynamics.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Norms.
Variable C : numClosedFieldType.
Definition norm2 m d (X : 'M[C]_(m, d)) : C := \sum_i \sum_j `|X i j| ^+ 2.
(* The Frobenius norm. *)
Definition normF m d (X : 'M[C]_(m, d)) : C := sqrtC (norm2 X).
Lemma norm2_ge0 m d (X : 'M[C]_(m, d)) : 0 <= norm2 X.
Proof. by apply: sumr_ge0 => i _; apply: sumr_ge0 => j _; rewrite exprn_ge0. Qed.
Lemma normF_ge0 m d (X : 'M[C]_(m, d)) : 0 <= normF X.
Proof. by rewrite sqrtC_ge0 norm2_ge0. Qed.
Lemma normF_sqr m d (X : 'M[C]_(m, d)) : normF X ^+ 2 = norm2 X.
Proof. exact: sqrtCK. Qed.
Lemma normF_entry m d (X : 'M[C]_(m, d)) i j : `|X i j| <= normF X.
Proof.
rewrite -ler_sqr ?nnegrE ?normF_ge0 // normF_sqr /norm2 (bigD1 i) //= (bigD1 j) //= -addrA.
rewrite ler_addl addr_ge0 //; first by apply: sumr_ge0 => k _; rewrite exprn_ge0.
by apply: sumr_ge0 => k _; apply: sumr_ge0 => l _; rewrite exprn_ge0.
Qed.
Lemma normF_tri m d (X Y : 'M[C]_(m, d)) : normF X <= normF Y + norm1 (X - Y).
Proof.
rewrite -ler_sqr ?nnegrE ?addr_ge0 ?normF_ge0 ?norm1_ge0 // normF_sqr.
apply: (@le_trans _ _ (\sum_i \sum_j
    (`|Y i j| ^+ 2 + 2%:R * normF Y * `|(X - Y) i j| + norm1 (X - Y) * `|(X - Y) i j|))).
  apply: ler_sum => i _; apply: ler_sum => j _.
  have T : `|X i j| <= `|Y i j| + `|(X - Y) i j|.
    by rewrite !mxE; have := ler_norm_add (Y i j) (X i j - Y i j); rewrite addrC subrK.
  apply: (@le_trans _ _ ((`|Y i j| + `|(X - Y) i j|) ^+ 2)).
    by rewrite ler_sqr ?nnegrE ?addr_ge0.
  have -> : (`|Y i j| + `|(X - Y) i j|) ^+ 2 =
    `|Y i j| ^+ 2 + 2%:R * `|Y i j| * `|(X - Y) i j| + `|(X - Y) i j| * `|(X - Y) i j| by ring.
  apply: ler_add; last by rewrite ler_wpmul2r ?norm1_entry.
  by rewrite ler_add2l ler_wpmul2r // ler_wpmul2l ?ler0n ?normF_entry.
have -> : \sum_i \sum_j (`|Y i j| ^+ 2 + 2%:R * normF Y * `|(X - Y) i j| +
    norm1 (X - Y) * `|(X - Y) i j|) =
    norm2 Y + 2%:R * normF Y * norm1 (X - Y) + norm1 (X - Y) * norm1 (X - Y).
  under eq_bigr do rewrite !big_split /= -!mulr_sumr.
  by rewrite !big_split /= -!mulr_sumr.
by rewrite -normF_sqr le_eqVlt; apply/orP; left; apply/eqP; ring.
Qed.
Lemma norm1_0 m d : norm1 (0 : 'M[C]_(m, d)) = 0.
Proof. by rewrite /norm1 big1 // => i _; rewrite big1 // => j _; rewrite mxE normr0. Qed.
Lemma norm1N m d (X : 'M[C]_(m, d)) : norm1 (- X) = norm1 X.
Proof. by apply: eq_bigr => i _; apply: eq_bigr => j _; rewrite mxE normrN. Qed.
Lemma norm1D m d (X Y : 'M[C]_(m, d)) : norm1 (X + Y) <= norm1 X + norm1 Y.
Proof.
rewrite /norm1 -big_split; apply: ler_sum => i _ /=; rewrite -big_split.
by apply: ler_sum => j _; rewrite mxE ler_norm_add.
Qed.
Lemma normF_le1 m d (X : 'M[C]_(m, d)) : normF X <= norm1 X.
Proof.
have := normF_tri X 0; rewrite subr0 /normF (_ : norm2 (0 : 'M_(m, d)) = 0) ?sqrtC0 ?add0r //.
by rewrite /norm2 big1 // => i _; rewrite big1 // => j _; rewrite mxE normr0 expr0n.
Qed.
Lemma norm1_leF m d (X : 'M[C]_(m, d)) : norm1 X <= (m * d)%:R * normF X.
Proof.
apply: (@le_trans _ _ (\sum_(i < m) \sum_(j < d) normF X)).
  by apply: ler_sum => i _; apply: ler_sum => j _; exact: normF_entry.
by rewrite sumr_const card_ord sumr_const card_ord -mulrnA mulr_natl mulnC.
Qed.
End Norms.

Section Parts.
Variables (C : numClosedFieldType) (n d : nat).
Local Notation one := (e C (1 + n)).
Implicit Types (X : 'M[C]_(1 + n, d)).

Definition mean X : 'rV[C]_d := (1 + n)%:R^-1 *: (one^T *m X).
Definition LFC X : 'M[C]_(1 + n, d) := one *m mean X.
Definition P : 'M[C]_(1 + n) := 1%:M - (1 + n)%:R^-1 *: (one *m one^T).
Definition HFC X : 'M[C]_(1 + n, d) := P *m X.
(* differences to the first token *)
Definition diff X : 'M[C]_(n, d) := dsubmx (Si C n *m X).

Lemma nz : (1 + n)%:R != 0 :> C. Proof. by rewrite pnatr_eq0. Qed.
Lemma one_one : one^T *m one = (1 + n)%:R%:M.
Proof.
apply/matrixP=> i j; rewrite !ord1 !mxE eqxx mulr1n (eq_bigr (fun _ => 1)).
  by rewrite sumr_const card_ord.
by move=> k _; rewrite !mxE mulr1.
Qed.
Lemma P_one : P *m one = 0.
Proof.
by rewrite mulmxBl mul1mx -scalemxAl -mulmxA one_one mul_mx_scalar scalerA mulVf ?nz // scale1r subrr.
Qed.
Lemma HFC_LFC X : X = HFC X + LFC X.
Proof.
by rewrite /HFC /LFC /P /mean mulmxBl mul1mx -scalemxAl -scalemxAr mulmxA subrK.
Qed.
Lemma one_blocks : one = col_mx 1%:M (e C n).
Proof.
apply/matrixP=> i j; rewrite !mxE; case: splitP => k _; rewrite !mxE //.
by rewrite !ord1 eqxx.
Qed.
Lemma diff_one r : diff (one *m r) = 0.
Proof.
rewrite /diff one_blocks mul_col_mx mul1mx /Si mul_block_col !mul1mx mul0mx addr0.
by rewrite mulNmx addNr col_mxKd.
Qed.
Lemma diffD X Y : diff (X + Y) = diff X + diff Y.
Proof. by rewrite /diff mulmxDr; apply/matrixP=> i j; rewrite !mxE. Qed.
Lemma HFC_diff X : HFC X = P *m col_mx 0 (diff X).
Proof.
have SSi : S C n *m Si C n = 1%:M by apply: mulmx1C; exact: SiS.
rewrite /HFC -{1}[X]mul1mx -SSi -mulmxA -[Si C n *m X]vsubmxK -/(diff X).
rewrite /S mul_block_col mul1mx mul0mx addr0 mul1mx.
have -> : col_mx (usubmx (Si C n *m X)) (e C n *m usubmx (Si C n *m X) + diff X) =
    one *m usubmx (Si C n *m X) + col_mx 0 (diff X).
  by rewrite one_blocks mul_col_mx mul1mx add_col_mx addr0.
by rewrite mulmxDr mulmxA P_one mul0mx add0r.
Qed.
Lemma norm1_HFC X : norm1 (HFC X) <= norm1 P * norm1 (diff X).
Proof.
rewrite HFC_diff; apply: le_trans (norm1_mul _ _) _; rewrite ler_wpmul2l ?norm1_ge0 //.
rewrite /norm1 big_split_ord /= big1 ?add0r.
  by apply: ler_sum => i _; apply: ler_sum => j _; rewrite col_mxEd.
by move=> i _; rewrite big1 // => j _; rewrite col_mxEu mxE normr0.
Qed.
Lemma norm1_diff X : norm1 (diff X) <= norm1 (Si C n) * norm1 (HFC X).
Proof.
rewrite {1}[X]HFC_LFC diffD diff_one addr0; apply: le_trans _ (norm1_mul _ _).
rewrite [X in _ <= X]/norm1 big_split_ord /= ler_paddl //.
  by apply: sumr_ge0 => i _; apply: sumr_ge0.
by apply: ler_sum => i _; apply: ler_sum => j _; rewrite mxE.
Qed.

Variables (A : 'M[C]_(1 + n)) (W : 'M[C]_d).
Hypothesis A1 : A *m one = one.
Lemma diff_evolve L X : diff (evolve A W L X) = evolve (Bp A) W L (diff X).
Proof.
have SSi : S C n *m Si C n = 1%:M by apply: mulmx1C; exact: SiS.
elim: L => // L IH.
have -> : evolve A W L.+1 X = evolve A W L X + A *m evolve A W L X *m W by [].
rewrite diffD [RHS]/evolve iterS -/(evolve (Bp A) W L (diff X)) -IH; congr (_ + _).
set Y := evolve A W L X; rewrite {1}/diff.
have -> : Si C n *m (A *m Y *m W) = Si C n *m A *m S C n *m (Si C n *m Y) *m W.
  by rewrite -!mulmxA (mulmxA (S C n)) SSi mul1mx.
rewrite (conj_block A1) -[Si C n *m Y]vsubmxK mul_block_col mul_col_mx col_mxKd.
by rewrite mul0mx add0r.
Qed.

(* m = c + (1/n - pi) HFC *)
Lemma coupling (pi : 'rV[C]_(1 + n)) X : pi *m one = 1%:M ->
  mean X = pi *m X + ((1 + n)%:R^-1 *: one^T - pi) *m HFC X.
Proof.
move=> pi1; have oP : one^T *m P = 0.
  rewrite mulmxBr mulmx1 -scalemxAr mulmxA one_one mul_scalar_mx scalerA mulVf ?nz //.
  by rewrite scale1r subrr.
rewrite mulmxBl -scalemxAl /HFC mulmxA oP mul0mx scaler0 sub0r mulmxA.
rewrite /P mulmxBr mulmx1 mulmxBl opprB addrCA subrr addr0 -scalemxAr mulmxA pi1 mul1mx.
by rewrite -scalemxAl /mean.
Qed.
End Parts.

Section Cosines.
Variables (C : numClosedFieldType) (d : nat).
Implicit Types x y : 'rV[C]_d.
(* The cosine, of complex vectors too; of real ones the conjugation does nothing. *)
Definition dot x y : C := \sum_j x 0 j * (y 0 j)^*.
Definition cosine x y : C := dot x y / (normF x * normF y).

Lemma dot_self x : dot x x = normF x ^+ 2.
Proof. by rewrite normF_sqr /norm2 big_ord1; apply: eq_bigr => j _; rewrite normCK. Qed.
Lemma dot_bound x y : `|dot x y| <= normF x * norm1 y.
Proof.
apply: le_trans (ler_norm_sum _ _ _) _; rewrite /norm1 big_ord1 mulr_sumr.
by apply: ler_sum => j _; rewrite normrM norm_conjC ler_wpmul2r ?normF_entry.
Qed.

Lemma cosine_bound x y : 0 < normF x -> 0 < normF y ->
  `|1 - cosine x y| <= 2%:R * norm1 (x - y) / normF y.
Proof.
move=> x0 y0; have p0 : 0 < normF x * normF y by exact: mulr_gt0.
have -> : 1 - cosine x y = (normF x * (normF y - normF x) + dot x (x - y)) / (normF x * normF y).
  have -> : dot x (x - y) = normF x ^+ 2 - dot x y.
    rewrite -dot_self /dot -sumrB; apply: eq_bigr => j _.
    by rewrite !mxE rmorphB mulrBr.
  rewrite /cosine; field.
  by rewrite !gt_eqF.
rewrite normrM normfV (gtr0_norm p0) ler_pdivr_mulr //.
apply: le_trans (ler_norm_add _ _) _.
have -> : 2%:R * norm1 (x - y) / normF y * (normF x * normF y) =
  normF x * norm1 (x - y) + normF x * norm1 (x - y) by field; rewrite gt_eqF.
apply: ler_add; last exact: dot_bound.
rewrite normrM gtr0_norm // ler_wpmul2l ?normF_ge0 //.
rewrite real_ler_norml; last by rewrite rpredB // ger0_real ?normF_ge0.
apply/andP; split; first by rewrite -ler_opp2 opprK opprB ler_subl_addl; exact: normF_tri.
by rewrite ler_subl_addl -norm1N opprB; exact: normF_tri.
Qed.
End Cosines.
