(* T3c for matrices, with its form free of eigenvalues; T3d; the converse of T1b.  No axioms. *)
From mathcomp Require Import all_ssreflect all_algebra all_field.
From mathcomp.algebra_tactics Require Import ring.
Require Import TwoTokens T1_blocks T1a_spectrum Control.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* T1b, conversely: a layer with W != 0 that keeps consensus has equal row sums. *)
Theorem consensus_converse (F : fieldType) n d (A : 'M[F]_n.+1) (W : 'M[F]_d) : W != 0 ->
  (forall c : 'rV[F]_d, exists c' : 'rV[F]_d, e F n.+1 *m c + A *m (e F n.+1 *m c) *m W = e F n.+1 *m c') ->
  exists s, A *m e F n.+1 = s *: e F n.+1.
Proof.
move=> W0 keep; have /matrix0Pn[k [j wkj]] := W0.
have [c' E] := keep (delta_mx 0 k).
pose u := A *m e F n.+1; pose c : 'rV[F]_d := delta_mx 0 k.
have U i : u i 0 * W k j = c' 0 j - c 0 j.
  move/matrixP: E => /(_ i j); rewrite [LHS]mxE.
  have -> : (e F n.+1 *m c) i j = c 0 j by rewrite mxE big_ord1 mxE mul1r.
  have -> : (e F n.+1 *m c') i j = c' 0 j by rewrite mxE big_ord1 mxE mul1r.
  have -> : (A *m (e F n.+1 *m c) *m W) i j = u i 0 * W k j.
    by rewrite mulmxA -mulmxA -rowE mxE big_ord1 [row k W 0 j]mxE.
  by move=> <-; rewrite addrC addKr.
exists ((c' 0 j - c 0 j) / W k j); apply/matrixP=> i z; rewrite ord1 {z}.
by rewrite [RHS]mxE [e F n.+1 i 0]mxE mulr1 -(U i) mulfK.
Qed.

Section Discs.
Variable C : numClosedFieldType.
Implicit Types (h a : C).

(* T3d, the chain. *)
Theorem T3d_chain h a : -1 <= h < 0 -> `|a| < 1 ->
  [/\ 1 - `|h| * `|a| <= `|1 + h * a|, 1 - `|h| < 1 - `|h| * `|a| & `|1 + h| = 1 - `|h|].
Proof.
move=> /andP[h1 h0] a1; split.
- by have := ler_sub_norm_add 1 (h * a); rewrite normr1 normrM.
- by rewrite ltr_add2l ltr_opp2 gtr_pmulr // normr_gt0 lt_eqF.
- by rewrite ger0_norm ?ltr0_norm ?opprK // addrC -ler_subl_addr sub0r.
Qed.

(* T3c, "if", by the mean over a and its conjugate. *)
Theorem disc_pair h a : `|h + 2%:R^-1| <= 2%:R^-1 -> h != 0 -> `|a| < 1 ->
  `|1 + h| < `|1 + h * a| \/ `|1 + h| < `|1 + h * a^*|.
Proof.
move=> hd hn a1; pose x := h + h^*.
have two : 0 < 2%:R :> C by rewrite ltr0n.
have in_ : 2%:R * (h * h^*) + x <= 0.
  have : `|h + 2%:R^-1| ^+ 2 <= 2%:R^-1 ^+ 2.
    by rewrite ler_sqr ?nnegrE ?normr_ge0 ?invr_ge0 ?ler0n.
  rewrite normCK rmorphD fmorphV rmorph_nat -subr_ge0 => D.
  rewrite -oppr_ge0 -(pmulr_rge0 _ (_ : 0 < 2%:R^-1 :> C)) ?invr_gt0 //.
  apply: le_trans D _; rewrite le_eqVlt; apply/orP; left; apply/eqP; rewrite /x.
  by move: (h^*) => g; field.
have hh : 0 < h * h^* by rewrite -normCK exprn_gt0 // normr_gt0.
have x0 : x < 0.
  by apply: lt_le_trans in_; rewrite ltr_addr mulr_gt0.
have v0 : 0 < 1 - a * a^*.
  by rewrite subr_gt0 -normCK exprn_ilt1.
have p : 0 < (1 - a) * (1 - a)^*.
  rewrite -normCK exprn_gt0 // normr_gt0 subr_eq0; apply: contraTneq a1 => <-.
  by rewrite normr1 ltxx.
have mean : 2%:R * `|1 + h| ^+ 2 < `|1 + h * a| ^+ 2 + `|1 + h * a^*| ^+ 2.
  rewrite -subr_gt0 !normCK !rmorphD !rmorphM conjCK rmorph1.
  have -> : (1 + h * a) * (1 + h^* * a^*) + (1 + h * a^*) * (1 + h^* * a) - 2%:R * ((1 + h) * (1 + h^*))
    = (- (2%:R * (h * h^*) + x)) * (1 - a * a^*) + (- x) * ((1 - a) * (1 - a)^*).
    by rewrite rmorphB rmorph1 /x; move: (h^*) (a^*) => g b; ring.
  apply: ltr_paddl; first by rewrite mulr_ge0 ?oppr_ge0 // ltW.
  by rewrite mulr_gt0 ?oppr_gt0.
have [|le1] := real_ltP (normr_real (1 + h)) (normr_real (1 + h * a)); first by left.
have [|le2] := real_ltP (normr_real (1 + h)) (normr_real (1 + h * a^*)); first by right.
have s (u : C) : `|u| <= `|1 + h| -> `|u| ^+ 2 <= `|1 + h| ^+ 2.
  by move=> le; rewrite ler_sqr ?nnegrE.
have := lt_le_trans mean (ler_add (s _ le1) (s _ le2)).
by rewrite -[2%:R]/(1 + 1) mulrDl mul1r ltxx.
Qed.

(* The eigenvalues of a real matrix come in conjugate pairs. *)
Lemma conj_root n (B : 'M[C]_n) a : (forall i j, B i j \is Num.real) ->
  root (char_poly B) a -> root (char_poly B) a^*.
Proof.
move=> Br ra; have E : map_mx conjC B = B.
  by apply/matrixP=> i j; rewrite mxE conj_Creal.
by rewrite -E -map_char_poly /root horner_map fmorph_eq0.
Qed.

(* A positive A that is real: consensus loses to some mode. *)
Section Positive.
Variables (n d : nat) (A : 'M[C]_(1 + n)) (H : 'M[C]_d) (eps : C).
Hypothesis A1 : A *m e C (1 + n) = e C (1 + n).
Hypotheses (eps0 : 0 < eps) (Apos : forall i j, eps <= A i j) (two_tokens : (0 < n)%N).

(* T3c (4), for each h: some eigenvalue of the quotient beats it. *)
Theorem disc_keeps h : `|h + 2%:R^-1| <= 2%:R^-1 -> h != 0 ->
  exists2 a, root (char_poly (Bp A)) a & `|1 + h| < `|1 + h * a|.
Proof.
move=> hd h0; have /closed_rootP[a ra] : size (char_poly (Bp A)) != 1%N.
  by rewrite size_char_poly eqSS -lt0n.
have real i j : A i j \is Num.real by rewrite ger0_real // (le_trans (ltW eps0)).
have Br i j : Bp A i j \is Num.real.
  rewrite !mxE rpredB // !big_ord1 rpredM // !mxE ?rpred1 //.
have [lt|lt] := disc_pair hd h0 (perron A1 eps0 Apos ra); first by exists a.
by exists a^* => //; exact: conj_root.
Qed.

(* T3c (4): NON_SMOOTHING: rho_C, with whatever h it is attained, is exceeded. *)
Theorem disc_non_smoothing : (forall h, root (char_poly H) h -> `|h + 2%:R^-1| <= 2%:R^-1 /\ h != 0) ->
  forall h, root (char_poly H) h -> exists h' a, [/\ root (char_poly H) h', root (char_poly (Bp A)) a &
    `|1 + h| < `|1 + h' * a|].
Proof. by move=> Hd h rh; have [hd h0] := Hd _ rh; have [a ra lt] := disc_keeps hd h0; exists h, a. Qed.
End Positive.

(* T3c (5): ||2H + I||_2 <= 1 and H nonsingular put the eigenvalues of H into the disc. *)
Definition sum2 d (v : 'rV[C]_d) := \sum_j `|v 0 j| ^+ 2.
Definition contraction d (K : 'M[C]_d) := forall v : 'rV[C]_d, sum2 (v *m K) <= sum2 v.

Lemma contraction_root d (K : 'M[C]_d) k : contraction K -> root (char_poly K) k -> `|k| <= 1.
Proof.
move=> c; rewrite -eigenvalue_root_char => /eigenvalueP[v vK v0].
have p : 0 < sum2 v.
  have /rV0Pn[j vj] := v0; rewrite /sum2 (bigD1 j) //= ltr_paddr ?exprn_gt0 ?normr_gt0 //.
  by apply: sumr_ge0 => k' _; rewrite exprn_ge0.
have := c v; rewrite vK.
have -> : sum2 (k *: v) = `|k| ^+ 2 * sum2 v.
  by rewrite /sum2 mulr_sumr; apply: eq_bigr => j _; rewrite mxE normrM exprMn.
rewrite -[X in _ <= X]mul1r ler_pmul2r // => le1.
by rewrite -(expr_le1 (_ : (0 < 2)%N)).
Qed.

Theorem matrix_form d (H : 'M[C]_d) : H \in unitmx -> contraction (2%:R *: H + 1%:M) ->
  forall h, root (char_poly H) h -> `|h + 2%:R^-1| <= 2%:R^-1 /\ h != 0.
Proof.
move=> u c h rh; have two : 0 < 2%:R :> C by rewrite ltr0n.
move: (rh); rewrite -eigenvalue_root_char => /eigenvalueP[v vH v0]; split.
  have : `|2%:R * h + 1| <= 1.
    apply: (contraction_root c); rewrite -eigenvalue_root_char; apply/eigenvalueP; exists v => //.
    by rewrite mulmxDr mulmx1 -scalemxAr vH scalerA scalerDl scale1r.
  have -> : 2%:R * h + 1 = 2%:R * (h + 2%:R^-1) by rewrite mulrDr mulfV // gt_eqF.
  by rewrite normrM gtr0_norm // -ler_pdivl_mull // mulr1.
apply: contraNneq v0 => h0; move: vH; rewrite h0 scale0r => vH.
by rewrite -[v](mulmxK u) vH mul0mx.
Qed.

(* The same with K = 2H + I: H = -(I - K)/2, ||K||_2 <= 1, 1 no eigenvalue of K. *)
Theorem matrix_form_K d (K : 'M[C]_d) : contraction K -> ~~ root (char_poly K) 1 ->
  let H := - (2%:R^-1 *: (1%:M - K)) in H \in unitmx /\ 2%:R *: H + 1%:M = K.
Proof.
move=> c n1 H; have two : 2%:R != 0 :> C by rewrite pnatr_eq0.
have E : 2%:R *: H + 1%:M = K.
  by rewrite /H scalerN scalerA mulfV // scale1r opprB subrK.
split=> //; rewrite -row_free_unit -kermx_eq0; apply: contraNT n1 => k0.
rewrite -eigenvalue_root_char; have /rowV0Pn[v vk v0] := k0.
apply/eigenvalueP; exists v => //; move/sub_kermxP: vk => vH.
by rewrite -E mulmxDr mulmx1 -scalemxAr vH scaler0 add0r scale1r.
Qed.
End Discs.

(* At these values the hypotheses hold. *)
Definition disc_non_smoothing_instance :=
  @disc_non_smoothing algCnumClosedField 1 1 uniform (- 2%:R^-1)%:M _ uniform1 half_gt0 half_le_uniform isT.
