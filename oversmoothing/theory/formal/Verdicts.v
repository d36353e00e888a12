(* What the two strict verdicts mean for HFC/LFC, with Perron's vector and the dominant modes found
   rather than assumed: Thm 3 of arXiv 2401.04301 v1, and its control statements.  No axioms.    *)
From mathcomp Require Import all_ssreflect all_algebra all_field.
From mathcomp.algebra_tactics Require Import ring.
Require Import TwoTokens T1_blocks T1a_spectrum Control Powers Dynamics Norms Singular T4a_smoothing.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Keeps.
Variables (C : numClosedFieldType) (n d : nat) (A : 'M[C]_(1 + n)) (H : 'M[C]_d).
Variables (pi : 'rV[C]_(1 + n)) (w : 'rV[C]_n) (z : 'rV[C]_d) (h a : C) (X0 : 'M[C]_(1 + n, d)).
Hypothesis arch : archimedean C.
Hypothesis A1 : A *m e C (1 + n) = e C (1 + n).
Hypotheses (piA : pi *m A = pi) (pi1 : pi *m e C (1 + n) = 1%:M).
Hypotheses (wA : w *m Bp A = a *: w) (zH : z *m H = h *: z).
(* The mode (h, a) beats every mode of consensus. *)
Hypothesis keeps : forall h', root (char_poly H) h' -> `|1 + h'| < `|1 + h * a|.
Hypothesis generic : z *m (diff X0)^T *m w^T != 0.
Local Notation X L := (evolve A H^T L X0).
Definition delta : C := normF ((1 + n)%:R^-1 *: (e C (1 + n))^T - pi).

Lemma pi_evolve L : pi *m X L = evolve 1%:M H^T L (pi *m X0).
Proof.
elim: L => // L IH; have -> : X L.+1 = X L + A *m X L *m H^T by [].
by rewrite mulmxDr !mulmxA piA IH [RHS]/evolve iterS mul1mx.
Qed.

Lemma norm2_mul m k (V : 'M[C]_(m, k)) (v : 'rV[C]_m) : norm2 (v *m V) <= norm2 v * norm2 V.
Proof.
rewrite /norm2 !big_ord1 [Y in _ <= _ * Y]exchange_big mulr_sumr; apply: ler_sum => j _.
apply: (@le_trans _ _ ((\sum_i `|v 0 i| * `|V i j|) ^+ 2)); last exact: cauchy_schwarz.
rewrite ler_sqr ?nnegrE ?sumr_ge0 // => [|i _]; last by rewrite mulr_ge0.
rewrite mxE; apply: le_trans (ler_norm_sum _ _ _) _.
by apply: ler_sum => i _; rewrite normrM.
Qed.

(* T1f (4): liminf HFC/LFC >= 1/(sqrt n delta). *)
Theorem liminf_floor eps : 0 < eps -> exists N, forall L, (N <= L)%N ->
  0 < normF (HFC (X L)) /\
  normF (LFC (X L)) <= (sqrtC (1 + n)%:R * delta + eps) * normF (HFC (X L)).
Proof.
move=> e0; pose r := `|1 + h * a|; pose s : C := sqrtC (1 + n)%:R.
have s0 : 0 < s by rewrite sqrtC_gt0 ltr0n.
pose g := `|(w *m diff X0 *m z^T) 0 0|.
have g0 : 0 < g.
  rewrite normr_gt0; apply: contraNneq generic => E.
  apply/eqP; apply: trmx_inj; rewrite !trmx_mul !trmxK trmx0 mulmxA.
  by apply/matrixP=> i j; rewrite !ord1 E mxE.
have d0 : (0 < d)%N.
  rewrite lt0n; apply: contraNneq generic => E; apply/eqP.
  move: z X0; rewrite E => z' X'; rewrite (thinmx0 z') !mul0mx //.
have r0 : 0 < r.
  have /closed_rootP[b rb] : size (char_poly H) != 1%N.
    by rewrite size_char_poly eqSS -lt0n.
  exact: le_lt_trans (keeps rb).
have [|q /andP[q0 qr] [K K0 HK]] := @growth_below C 1 d 1%:M H^T r r0.
  move=> h' b; rewrite trmxK => rh; rewrite -eigenvalue_root_char => /eigenvalueP[v].
  rewrite mulmx1 => /esym E v0; suff -> : b = 1 by rewrite mulr1; exact: keeps.
  have /rV0Pn[j vj] := v0; apply: (mulIf vj); move/matrixP: E => /(_ 0 j).
  by rewrite mxE mul1r.
pose c L := norm1 (pi *m X L); pose Hn L := normF (HFC (X L)).
have up L : c L <= K * norm1 (pi *m X0) * q ^+ L.
  by rewrite /c pi_evolve; apply: le_trans (HK _ _) _; rewrite mulrAC.
pose M := norm1 w * (norm1 (Si C n) * ((1 + n) * d)%:R) * norm1 z^T.
have M0 : 0 <= M by rewrite !mulr_ge0 ?norm1_ge0 ?ler0n.
have low L : g * r ^+ L <= M * Hn L.
  have -> : g * r ^+ L = `|(w *m diff (X L) *m z^T) 0 0|.
    rewrite (diff_evolve _ A1) (@along _ _ _ _ H^T w z^T a h) //; last first.
      by rewrite -trmx_mul zH linearZ.
    by rewrite mxE normrM normrX mulrC.
  apply: le_trans (norm1_entry _ _ _) _; apply: le_trans (norm1_mul _ _) _.
  have -> : M * Hn L = norm1 w * (norm1 (Si C n) * (((1 + n) * d)%:R * Hn L)) * norm1 z^T.
    by rewrite /M; ring.
  rewrite ler_wpmul2r ?norm1_ge0 //; apply: le_trans (norm1_mul _ _) _.
  rewrite ler_wpmul2l ?norm1_ge0 //; apply: le_trans (norm1_diff _) _.
  by rewrite ler_wpmul2l ?norm1_ge0 // norm1_leF.
have Mp : 0 < M.
  rewrite lt_def M0 andbT; apply/eqP => E; have := low 0%N.
  by rewrite expr0 mulr1 E mul0r => /(lt_le_trans g0); rewrite ltxx.
pose K1 := K * norm1 (pi *m X0); have K10 : 0 <= K1 by rewrite mulr_ge0 ?norm1_ge0.
have D0 : 0 < s * K1 * M + 1 by rewrite ltr_paddl ?ltr01 // (mulr_ge0 (mulr_ge0 (ltW s0) K10) M0).
have t0 : 0 < eps * g / (s * K1 * M + 1) by rewrite divr_gt0 ?mulr_gt0.
have [N HN] := smaller_power arch q0 qr t0; exists N => L NL.
have Hp : 0 < Hn L.
  rewrite lt_def normF_ge0 andbT; apply/eqP => E; have := low L.
  by rewrite E mulr0 (lt_geF (mulr_gt0 g0 (exprn_gt0 _ r0))).
split=> //.
have small : s * c L <= eps * Hn L.
  rewrite -(ler_pmul2l Mp); apply: (@le_trans _ _ (eps * (g * r ^+ L))); last first.
    by rewrite [M * _]mulrCA; apply: (ler_wpmul2l (ltW e0)); exact: low.
  apply: (@le_trans _ _ (M * (s * (K1 * (eps * g / (s * K1 * M + 1) * r ^+ L))))).
    rewrite ler_pmul2l // ler_pmul2l //; apply: le_trans (up L) _.
    by rewrite ler_wpmul2l // HN.
  have -> : M * (s * (K1 * (eps * g / (s * K1 * M + 1) * r ^+ L))) =
    eps * (g * r ^+ L) * (s * K1 * M / (s * K1 * M + 1)) by field; rewrite gt_eqF.
  apply: (ler_pimulr (ltW (mulr_gt0 e0 (mulr_gt0 g0 (exprn_gt0 _ r0))))).
  by rewrite ler_pdivr_mulr // mul1r ler_addl ler01.
have nL : normF (LFC (X L)) = s * normF (mean (X L)).
  by rewrite /normF LFC_norm sqrtCM ?nnegrE ?ler0n ?norm2_ge0.
rewrite nL mulrDl; apply: le_trans (_ : s * (delta * Hn L + c L) <= _); last first.
  by rewrite mulrDr mulrA ler_add2l.
rewrite ler_pmul2l //.
apply: le_trans (normF_tri _ (((1 + n)%:R^-1 *: (e C (1 + n))^T - pi) *m HFC (X L))) _.
apply: ler_add; last by rewrite {1}(coupling (X L) pi1) addrK.
rewrite -ler_sqr ?nnegrE ?mulr_ge0 ?normF_ge0 // exprMn !normF_sqr.
exact: norm2_mul.
Qed.
End Keeps.

Section Modes.
Variable C : numClosedFieldType.

Lemma real_max m (F : 'I_m.+1 -> C) : (forall i, F i \is Num.real) -> exists i, forall j, F j <= F i.
Proof.
elim: m F => [|m IH] F Fr; first by exists ord0 => j; rewrite ord1.
have [i Hi] := IH (fun i => F (fintype.lift ord0 i)) (fun i => Fr _).
have [le|lt] := real_leP (Fr ord0) (Fr (fintype.lift ord0 i)).
  by exists (fintype.lift ord0 i) => j; case: (unliftP ord0 j) => [k ->|->].
exists ord0 => j; case: (unliftP ord0 j) => [k ->|->] //.
exact: le_trans (Hi k) (ltW lt).
Qed.

(* A real function has a maximum over the eigenvalues. *)
Lemma dominant d (H : 'M[C]_d) (f : C -> C) : (0 < d)%N -> (forall x, f x \is Num.real) ->
  exists h, root (char_poly H) h /\ forall h', root (char_poly H) h' -> f h' <= f h.
Proof.
case: d H => // d H _ fr; have [P0 [Q [PQ tr]]] := trigonal H; set T := P0 *m H *m Q in tr.
have [i Hi] := @real_max d (fun i => f (T i i)) (fun i => fr _).
exists (T i i); rewrite -(char_poly_sim H PQ); split; first exact: root_trig.
move=> h'; rewrite char_poly_trig // /root horner_prod => /prodf_eq0[k _].
by rewrite hornerD hornerN hornerX hornerC subr_eq0 => /eqP->.
Qed.

Lemma left_eigenvector d (H : 'M[C]_d) h : root (char_poly H) h ->
  exists2 z : 'rV[C]_d, z *m H = h *: z & z != 0.
Proof. by rewrite -eigenvalue_root_char => /eigenvalueP[z zH z0]; exists z. Qed.

Variables (n d : nat) (A : 'M[C]_(1 + n)) (H : 'M[C]_d).
Hypothesis A1 : A *m e C (1 + n) = e C (1 + n).

Lemma quotient_unit : (forall a, root (char_poly (Bp A)) a -> a != 1) -> 1%:M - Bp A \in unitmx.
Proof.
move=> no1; rewrite unitmxE unitfE; apply: contraT; rewrite negbK => /eqP E.
have r1 : root (char_poly (Bp A)) 1.
  rewrite /root /char_poly -horner_evalE -det_map_mx /=.
  have -> : map_mx (horner_eval 1) (char_poly_mx (Bp A)) = 1%:M - Bp A.
    apply/matrixP=> i j; rewrite !mxE /horner_eval hornerD hornerN hornerC.
    by rewrite hornerMn hornerX.
  by rewrite E.
by have := no1 _ r1; rewrite eqxx.
Qed.

(* Where 1 is simple, A has a left eigenvector of entries that sum to 1. *)
Lemma left_perron : (forall a, root (char_poly (Bp A)) a -> a != 1) ->
  exists pi : 'rV[C]_(1 + n), pi *m A = pi /\ pi *m e C (1 + n) = 1%:M.
Proof.
move=> /quotient_unit u.
have [b Eb] : exists b : 'rV[C]_n, b - b *m Bp A = ursubmx A.
  exists (ursubmx A *m invmx (1%:M - Bp A)); set k := _ *m invmx _.
  by rewrite -{1}[k]mulmx1 -mulmxBr mulmxKV.
pose r := row_mx 1%:M b : 'rV[C]_(1 + n).
have SSi : S C n *m Si C n = 1%:M by apply: mulmx1C; exact: SiS.
have rB : r *m (Si C n *m A *m S C n) = r.
  rewrite (conj_block A1) /r mul_row_block !mul1mx mulmx0 addr0; congr row_mx.
  by rewrite -Eb subrK.
exists (r *m Si C n); split.
  by rewrite -{2}rB -!mulmxA SSi mulmx1.
rewrite one_blocks -mulmxA /Si mul_block_col !mul1mx !mul0mx addr0 mulmx1 addNr /r.
by rewrite mul_row_col mul1mx mulmx0 addr0.
Qed.

Lemma diff_onto (Y : 'M[C]_(n, d)) : diff (col_mx 0 Y) = Y.
Proof. by rewrite /diff /Si mul_block_col !mulmx0 !mul1mx !mul0mx !add0r col_mxKd. Qed.

(* HFC/LFC -> 0, and liminf HFC/LFC >= 1/k. *)
Definition smooths X0 := forall eps : C, 0 < eps -> exists N, forall L, (N <= L)%N ->
  0 < normF (LFC (evolve A H^T L X0)) /\
  normF (HFC (evolve A H^T L X0)) <= eps * normF (LFC (evolve A H^T L X0)).
Definition stays_above (k : C) X0 := forall eps : C, 0 < eps -> exists N, forall L, (N <= L)%N ->
  0 < normF (HFC (evolve A H^T L X0)) /\
  normF (LFC (evolve A H^T L X0)) <= (k + eps) * normF (HFC (evolve A H^T L X0)).
(* For all X_0 outside a proper subspace: where a linear form that is not 0 does not vanish. *)
Definition generically (Q : 'M[C]_(1 + n, d) -> Prop) := exists (v : 'rV[C]_(1 + n)) (z : 'rV[C]_d),
  (exists X0 : 'M[C]_(1 + n, d), z *m X0^T *m v^T != 0) /\
  forall X0 : 'M[C]_(1 + n, d), z *m X0^T *m v^T != 0 -> Q X0.

Hypotheses (arch : archimedean C) (two_tokens : (0 < n)%N) (some_feature : (0 < d)%N).
Variable eps : C.
Hypotheses (eps0 : 0 < eps) (Apos : forall i j, eps <= A i j).
Definition consensus_dominates := exists2 h, root (char_poly H) h &
  forall h' a, root (char_poly H) h' -> root (char_poly (Bp A)) a -> `|1 + h' * a| < `|1 + h|.
Definition mode_dominates := exists h a, [/\ root (char_poly H) h, root (char_poly (Bp A)) a &
  forall h', root (char_poly H) h' -> `|1 + h'| < `|1 + h * a|].

Lemma perron_pi : exists pi : 'rV[C]_(1 + n), pi *m A = pi /\ pi *m e C (1 + n) = 1%:M.
Proof.
apply: left_perron => a /(perron A1 eps0 Apos) lt1; apply: contraTneq lt1 => ->.
by rewrite normr1 ltxx.
Qed.

Lemma smoothing h : (0 < n)%N || (h != -1) -> root (char_poly H) h ->
  (forall h' a, root (char_poly H) h' -> root (char_poly (Bp A)) a -> `|1 + h' * a| < `|1 + h|) ->
  generically smooths.
Proof.
move=> n0 rh dom; have [pi [piA pi1]] := perron_pi.
have [z zH z0] := left_eigenvector rh; exists pi, z; split.
  apply: T4a_proper => //; apply/eqP => E; move: pi1; rewrite E mul0mx => /matrixP/(_ 0 0)/eqP.
  by rewrite !mxE eqxx eq_sym oner_eq0.
by move=> X0 g; exact: T4a_ratio arch A1 n0 piA pi1 zH dom g.
Qed.

(* Thm 3 of v1, with what it leaves out: strict dominance, X_0 outside a proper subspace. *)
Theorem v1_thm3 : (consensus_dominates -> generically smooths) /\
  (mode_dominates -> exists k, generically (stays_above k)).
Proof.
have [pi [piA pi1]] := perron_pi; split.
  by move=> [h rh dom]; apply: smoothing rh dom; rewrite two_tokens.
move=> [h [a [rh ra dom]]]; exists (sqrtC (1 + n)%:R * delta pi).
have [z zH z0] := left_eigenvector rh; have [w wA w0] := left_eigenvector ra.
pose v := w *m row_mx (- e C n) 1%:M.
have E (X0 : 'M[C]_(1 + n, d)) : z *m (diff X0)^T *m w^T = z *m X0^T *m v^T.
  have -> : diff X0 = row_mx (- e C n) 1%:M *m X0.
    by rewrite /diff -[X0 in LHS]vsubmxK -[X0 in RHS]vsubmxK /Si mul_block_col mul_row_col col_mxKd.
  by rewrite /v !trmx_mul !mulmxA.
exists v, z; split; last first.
  move=> X0; rewrite -E => g.
  exact: (liminf_floor arch A1 _ _ wA zH dom g).
have [Y g] := T4a_proper w0 z0; exists (col_mx 0 Y).
by rewrite -E diff_onto.
Qed.

Lemma ge1_norm (h a : C) : 0 < h -> `|a| < 1 -> `|1 + h * a| < `|1 + h|.
Proof.
move=> h0 a1; have p : 0 < 1 + h by rewrite ltr_paddr ?ltr01 // ltW.
rewrite (gtr0_norm p); apply: le_lt_trans (ler_norm_add _ _) _; rewrite normr1 ltr_add2l normrM gtr0_norm //.
by rewrite gtr_pmulr.
Qed.

(* v3: all eigenvalues of H in (0, inf): consensus dominates and X is smoothed. *)
Theorem v3_control_positive : (forall h, root (char_poly H) h -> 0 < h) ->
  consensus_dominates /\ generically smooths.
Proof.
move=> pos; have dom : consensus_dominates.
  have [h [rh Hh]] := @dominant d H (fun x => `|1 + x|) some_feature (fun x => normr_real _).
  exists h => // h' a rh' ra; apply: lt_le_trans (Hh _ rh').
  exact: ge1_norm (pos _ rh') (perron A1 eps0 Apos ra).
split=> //; have [h rh Hh] := dom; apply: smoothing (rh) Hh.
apply/orP; right; apply/eqP => E; have := pos _ rh.
by rewrite E ltr0N1.
Qed.

(* v3: all eigenvalues of H in [-1, 0): every mode of the quotient beats consensus (Control.control),
   and there is no oversmoothing.                                                                *)
Theorem v3_control_negative : (forall h, root (char_poly H) h -> -1 <= h < 0) ->
  mode_dominates /\ exists k, generically (stays_above k).
Proof.
move=> neg; have dom : mode_dominates.
  have [h [rh Hh]] := @dominant d H (fun x => `|1 + x|) some_feature (fun x => normr_real _).
  have /closed_rootP[a ra] : size (char_poly (Bp A)) != 1%N.
    by rewrite size_char_poly eqSS -lt0n.
  exists h, a; split=> // h' rh'; apply: le_lt_trans (Hh _ rh') _.
  have /andP[h1 h0] := neg _ rh; exact: beats h1 h0 (perron A1 eps0 Apos ra).
by split=> //; exact: v1_thm3.2.
Qed.

(* ... and where the eigenvalues of A are real, the dominant one is the smallest. *)
Theorem smallest_dominates (h a1 a : C) : -1 <= h < 0 -> a1 \is Num.real -> a \is Num.real ->
  -1 < a1 -> a1 <= a -> a < 1 -> `|1 + h * a| <= `|1 + h * a1|.
Proof.
move=> /andP[h1 h0] r1 r lo le hi; have nn b : b \is Num.real -> -1 < b -> b < 1 -> 0 < 1 + h * b.
  move=> br b1 b2; rewrite -[h * b]opprK subr_gt0.
  have hr : - (h * b) \is Num.real by rewrite rpredN rpredM // ltr0_real.
  apply: le_lt_trans (real_ler_norm hr) _; rewrite normrN normrM ltr0_norm //.
  apply: (@le_lt_trans _ _ `|b|); last by rewrite real_ltr_norml // b1.
  by rewrite ler_pimull // ler_oppl.
rewrite !gtr0_norm ?nn ?(lt_le_trans lo) ?(le_lt_trans le) // ler_add2l.
by rewrite ler_nmul2l.
Qed.
End Modes.

(* The hypotheses hold for uniform attention; the eigenvalue 0 of A dominates for H = -1. *)
Section Instances.
Local Notation C := algCnumClosedField.
Let zH : (1%:M : 'rV[C]_1) *m (-1)%:M = -1 *: 1%:M.
Proof. by rewrite mul1mx scalemx1. Qed.
Let wA : (1%:M : 'rV[C]_1) *m Bp uniform = 0 *: 1%:M.
Proof. by rewrite Bp_uniform mulmx0 scale0r. Qed.
Let keeps h' : root (char_poly ((-1)%:M : 'M[C]_1)) h' -> `|1 + h'| < `|1 + (-1) * 0 : C|.
Proof.
by rewrite root_mx11 mxE eqxx mulr1n => /eqP ->; rewrite subrr normr0 mulr0 addr0 normr1 ltr01.
Qed.
Let generic_difference : (1%:M : 'rV[C]_1) *m (diff first_token)^T *m (1%:M : 'rV[C]_1)^T != 0.
Proof.
rewrite mul1mx trmx1 mulmx1 -trmx0 (inj_eq trmx_inj).
apply/eqP => /matrixP/(_ 0 0)/eqP; rewrite /diff /Si !mxE sum2.
rewrite !mxE /= mulr1 mulr0 addr0; case: splitP => k; rewrite !ord1 // => _.
rewrite mxE; case: splitP => // l _.
by rewrite !mxE oppr_eq0 oner_eq0.
Qed.
Definition liminf_floor_instance :=
  @liminf_floor C 1 1 uniform (-1)%:M halves 1%:M 1%:M (-1) 0 first_token algC_archimedean uniform1 uniform_pi halves1 wA zH keeps generic_difference.

Definition v1_thm3_instance := @v1_thm3 C 1 1 uniform 1%:M uniform1 algC_archimedean isT _ half_gt0 half_le_uniform.
Definition v3_control_negative_instance :=
  @v3_control_negative C 1 1 uniform (-1)%:M uniform1 algC_archimedean isT isT _ half_gt0 half_le_uniform.
Definition v3_control_positive_instance :=
  @v3_control_positive C 1 1 uniform 1%:M uniform1 algC_archimedean isT _ half_gt0 half_le_uniform.
End Instances.
