(* T1f (5) and (6): the limit of HFC/LFC for one simple dominant mode, and doubly stochastic
   attention; any number of tokens and features.  No axioms.                                     *)
From mathcomp Require Import all_ssreflect all_algebra all_field.
From mathcomp.algebra_tactics Require Import ring.
Require Import TwoTokens T1_blocks T1a_spectrum Powers Dynamics Norms Singular T4a_smoothing Verdicts Modes Limits T1f_modes.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section OneMode.
Variables (C : numClosedFieldType) (n d : nat) (A : 'M[C]_(1 + n)) (H : 'M[C]_(1 + d)) (a h : C).
Variables (v : 'cV[C]_(1 + n)) (u : 'cV[C]_(1 + d)).
Local Notation one := (e C (1 + n)).
Hypotheses (arch : archimedean C) (two_tokens : (0 < n)%N).
Hypotheses (sa : simple A a) (sh : simple H h).
Hypotheses (vA : A *m v = a *: v) (uH : H *m u = h *: u) (v0 : v != 0) (u0 : u != 0).
Hypothesis dominates : forall h' a', root (char_poly H) h' -> root (char_poly A) a' ->
  (h', a') <> (h, a) -> `|1 + h' * a'| < `|1 + h * a|.
Local Notation mu := (1 + h * a).

(* For all X_0 outside a proper subspace X_L / mu^L tends to a multiple of v u^T that is not 0. *)
Theorem rank_one_limit : generically (fun X0 : 'M[C]_(1 + n, 1 + d) => exists2 s : C, s != 0 &
  tendsm (fun L => mu ^- L *: evolve A H^T L X0) (s *: (v *m u^T))).
Proof.
have [w [z [_ _ wv zu T]]] := mode_limit arch two_tokens sa sh vA uH v0 u0 dominates.
have nonzero m (x : 'rV[C]_m) (y : 'cV[C]_m) : x *m y = 1%:M -> x != 0.
  move=> E; apply/eqP => Z; move: E; rewrite Z mul0mx => /matrixP/(_ 0 0)/eqP.
  by rewrite !mxE eqxx eq_sym oner_eq0.
exists w, z; split; first by apply: T4a_proper; [exact: nonzero wv | exact: nonzero zu].
move=> X0 g; exists ((z *m X0^T *m w^T) 0 0).
  apply: contraNneq g => E; apply/eqP/matrixP=> i j; rewrite !ord1 E mxE //.
by apply: tendsm_norm1 => eps /T.
Qed.

Lemma outer_norm m (x : 'cV[C]_m) (y : 'rV[C]_(1 + d)) : normF (x *m y) = normF x * normF y.
Proof.
rewrite /normF -sqrtCM ?nnegrE ?norm2_ge0 //; congr sqrtC; rewrite /norm2 mulr_suml.
apply: eq_bigr => i _; rewrite !big_ord1 mulr_sumr; apply: eq_bigr => j _.
by rewrite mxE big_ord1 normrM exprMn.
Qed.
Lemma normFZ m k (c : C) (M : 'M[C]_(m, k)) : normF (c *: M) = `|c| * normF M.
Proof.
rewrite /normF -[`|c|]sqrCK // -sqrtCM ?nnegrE ?exprn_ge0 ?norm2_ge0 //.
congr sqrtC; rewrite /norm2 mulr_sumr; apply: eq_bigr => i _; rewrite mulr_sumr.
by apply: eq_bigr => j _; rewrite mxE normrM exprMn.
Qed.
Lemma HFCZ (c : C) (X : 'M[C]_(1 + n, 1 + d)) : HFC (c *: X) = c *: HFC X.
Proof. by rewrite /HFC -scalemxAr. Qed.
Lemma LFC_J (X : 'M[C]_(1 + n, 1 + d)) : LFC X = ((1 + n)%:R^-1 *: (one *m one^T)) *m X.
Proof. by rewrite /LFC /mean -scalemxAr -scalemxAl mulmxA. Qed.
Lemma LFC_v : normF (LFC v) = sqrtC (1 + n)%:R * `|mean v 0 0|.
Proof.
rewrite LFC_normF; congr (_ * _); rewrite /normF /norm2 !big_ord1.
by rewrite sqrCK.
Qed.

(* (5): HFC/LFC tends to ||P v||/(sqrt n |mean v|), which is infinite where 1^T v = 0. *)
Theorem mode_ratio : generically (fun X0 : 'M[C]_(1 + n, 1 + d) =>
  let high L := normF (HFC (evolve A H^T L X0)) in
  let low L := normF (LFC (evolve A H^T L X0)) in
  (one^T *m v != 0 -> (exists N, forall L, (N <= L)%N -> 0 < low L) /\
     tends (fun L => high L / low L) (normF (HFC v) / (sqrtC (1 + n)%:R * `|mean v 0 0|))) /\
  (one^T *m v = 0 -> forall x, 0 < x -> exists N, forall L, (N <= L)%N ->
     0 < high L /\ x * low L <= high L)).
Proof.
have [w [z [ex lim]]] := rank_one_limit; exists w, z; split=> // X0 /lim[s s0 T] high low.
have mu0 : mu != 0 := mu_n0 two_tokens sa sh vA v0 dominates.
pose Z L := mu ^- L *: evolve A H^T L X0.
have m0 L : 0 < `|mu ^- L| by rewrite normr_gt0 invr_neq0 // expf_neq0.
have Eh L : normF (HFC (Z L)) = `|mu ^- L| * high L by rewrite /Z HFCZ normFZ.
have El L : normF (LFC (Z L)) = `|mu ^- L| * low L by rewrite /Z LFC_J -scalemxAr normFZ -LFC_J.
have un : 0 < normF u^T.
  by apply: normF_gt0; rewrite -(inj_eq (@trmx_inj _ _ _)) trmxK trmx0.
have sn : 0 < `|s| by rewrite normr_gt0.
have Th : tends (fun L => normF (HFC (Z L))) (`|s| * (normF (HFC v) * normF u^T)).
  have := tendsm_normF (tendsmM (tendsm_const (P C n)) T).
  by rewrite -scalemxAr normFZ mulmxA outer_norm.
have Tl : tends (fun L => normF (LFC (Z L))) (`|s| * (normF (LFC v) * normF u^T)).
  have := tendsm_normF (tendsmM (tendsm_const ((1 + n)%:R^-1 *: (one *m one^T))) T).
  rewrite -scalemxAr normFZ mulmxA outer_norm => T'.
  have -> : normF (LFC v) = normF ((1 + n)%:R^-1 *: (one *m one^T) *m v).
    by rewrite /LFC /mean -scalemxAr -scalemxAl mulmxA.
  by apply: tends_eq T' => L; rewrite LFC_J.
split=> [ov|ov x x0].
  have lv : 0 < normF (LFC v).
    apply: normF_gt0; apply: contraNneq ov => E; have : one^T *m LFC v = 0 by rewrite E mulmx0.
    rewrite /LFC mulmxA one_one mul_scalar_mx /mean scalerA mulfV ?nz // scale1r => ->.
    exact/eqP.
  have l0 : `|s| * (normF (LFC v) * normF u^T) != 0 by rewrite gt_eqF // !mulr_gt0.
  split.
    have [N HN] := tends_below Tl l0; exists N => L /HN.
    rewrite [X in _ <= X]ger0_norm ?normF_ge0 // El => le.
    have : 0 < `|mu ^- L| * low L.
      by apply: lt_le_trans le; rewrite divr_gt0 ?ltr0n ?normr_gt0.
    by rewrite pmulr_rgt0.
  rewrite -LFC_v; apply: (@tends_eq _ (fun L => normF (HFC (Z L)) / normF (LFC (Z L)))).
    by move=> L; rewrite Eh El -mulf_div divff ?gt_eqF ?mul1r.
  have -> : normF (HFC v) / normF (LFC v) =
      `|s| * (normF (HFC v) * normF u^T) / (`|s| * (normF (LFC v) * normF u^T)).
    by field; rewrite !gt_eqF.
  by apply: tendsM Th (tendsV Tl l0).
have lv : normF (LFC v) = 0.
  by rewrite LFC_v /mean ov scaler0 mxE normr0 mulr0.
have hv : 0 < normF (HFC v).
  apply: normF_gt0; apply: contraNneq v0 => E; rewrite [v]HFC_LFC E add0r /LFC /mean ov.
  by rewrite scaler0 mulmx0.
rewrite lv mul0r mulr0 in Tl.
have h0 : 0 < `|s| * (normF (HFC v) * normF u^T) by rewrite !mulr_gt0.
set p := `|s| * _ in Th h0.
have [N HN] := tends_below Th (negbT (gt_eqF h0)).
have t0 : 0 < p / 2%:R / x by rewrite !divr_gt0 ?ltr0n.
have [M HM] := Tl _ t0; exists (maxn N M) => L; rewrite geq_max => /andP[/HN lo /HM].
rewrite subr0 ger0_norm ?normF_ge0 // El ler_pdivl_mulr // => hi.
move: lo; rewrite [`|p|]gtr0_norm // ger0_norm ?normF_ge0 // Eh => lo.
have pos : 0 < `|mu ^- L| * high L by apply: lt_le_trans lo; rewrite divr_gt0 ?ltr0n.
split; first by move: pos; rewrite pmulr_rgt0.
by rewrite -(ler_pmul2l (m0 L)) mulrCA mulrC; exact: le_trans hi lo.
Qed.
End OneMode.

(* (6): A doubly stochastic. *)
Section Doubly.
Variables (C : numClosedFieldType) (n d : nat) (A : 'M[C]_(1 + n)) (H : 'M[C]_d).
Local Notation one := (e C (1 + n)).
Hypotheses (arch : archimedean C) (A1 : A *m one = one) (oA : one^T *m A = one^T).
Local Notation pi := ((1 + n)%:R^-1 *: one^T).
Lemma uniform : pi *m A = pi /\ pi *m one = 1%:M.
Proof. by split; rewrite -scalemxAl ?oA // one_one scale_scalar_mx mulVf // nz. Qed.

Theorem doubly_stochastic : 
  (forall a k (v : 'cV[C]_(1 + n)), a != 1 -> iter k (mulmx (A - a%:M)) v = 0 -> one^T *m v = 0) /\
  (mode_dominates A H -> generically (fun X0 : 'M[C]_(1 + n, d) => forall eps, 0 < eps ->
     exists N, forall L, (N <= L)%N -> 0 < normF (HFC (evolve A H^T L X0)) /\
     normF (LFC (evolve A H^T L X0)) <= eps * normF (HFC (evolve A H^T L X0)))).
Proof.
have [piA pi1] := uniform; split=> [a k v a1 Z|[h [a [rh ra dom]]]].
  have [E _] := mode_no_consensus piA a1 Z.
  by apply: (scalerI (invr_neq0 (nz C n))); rewrite scaler0 scalemxAl.
have [z zH z0] := left_eigenvector rh; have [w wA w0] := left_eigenvector ra.
pose v := w *m row_mx (- e C n) 1%:M.
have E (X0 : 'M[C]_(1 + n, d)) : z *m (diff X0)^T *m w^T = z *m X0^T *m v^T.
  have -> : diff X0 = row_mx (- e C n) 1%:M *m X0.
    by rewrite /diff -[X0 in LHS]vsubmxK -[X0 in RHS]vsubmxK /Si mul_block_col mul_row_col col_mxKd.
  by rewrite /v !trmx_mul !mulmxA.
exists v, z; split.
  have [Y g] := T4a_proper w0 z0; exists (col_mx 0 Y).
  by rewrite -E diff_onto.
move=> X0; rewrite -E => g eps e0.
have [N HN] := liminf_floor arch A1 piA pi1 wA zH dom g e0; exists N => L /HN[].
by rewrite /delta subrr /normF (_ : norm2 0 = 0) ?sqrtC0 ?mulr0 ?add0r // /norm2 big1 // => i _;
  rewrite big1 // => j _; rewrite mxE normr0 expr0n.
Qed.
End Doubly.

(* The hypotheses hold for attention that exchanges two tokens and H = -1, and for uniform one. *)
Definition rank_one_limit_instance :=
  @rank_one_limit algCnumClosedField 1 0 swap minus1 (-1) (-1) sign 1%:M
    algC_archimedean isT simple_swap simple_minus1 swap_sign minus1_1 sign_neq0 one_neq0 swap_dominates.
Definition mode_ratio_instance :=
  @mode_ratio algCnumClosedField 1 0 swap minus1 (-1) (-1) sign 1%:M
    algC_archimedean isT simple_swap simple_minus1 swap_sign minus1_1 sign_neq0 one_neq0 swap_dominates.
Definition doubly_stochastic_instance :=
  @doubly_stochastic algCnumClosedField 1 1 TwoTokens.uniform 1%:M algC_archimedean uniform1 uniform_left.
