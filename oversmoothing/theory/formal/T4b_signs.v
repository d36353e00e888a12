(* T4b: one simple dominant pair of eigenvalues off consensus: it is real, its multiplier positive,
   the effective rank -> 1, the cosines -> +-1 by the signs of the eigenvector, and their mean.
   Real A and H of any size, within the complex numbers.  No axioms.                             *)
From mathcomp Require Import all_ssreflect all_algebra all_field.
From mathcomp.algebra_tactics Require Import ring.
Require Import TwoTokens T1_blocks T1a_spectrum Powers Dynamics Norms Singular T4a_smoothing Verdicts Modes Limits T1f_modes T1f_limits.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Real.
Variable C : numClosedFieldType.
Definition real_mx m k (M : 'M[C]_(m, k)) := forall i j, M i j \is Num.real.
Lemma conj_root m (M : 'M[C]_m) a : real_mx M -> root (char_poly M) a -> root (char_poly M) a^*.
Proof.
move=> Mr ra; have E : map_mx (@conjC C) M = M.
  by apply/matrixP=> i j; rewrite mxE conj_Creal.
by rewrite -E -map_char_poly rmorph_root.
Qed.
Lemma stochastic_root n (A : 'M[C]_(1 + n)) a : (forall i j, 0 <= A i j) ->
  A *m e C (1 + n) = e C (1 + n) -> root (char_poly A) a -> `|a| <= 1.
Proof.
move=> A0 A1; rewrite -eigenvalue_root_char => /eigenvalueP[w wA w0].
have rowsum i : \sum_j A i j = 1.
  have <- : (A *m e C (1 + n)) i 0 = \sum_j A i j.
    by rewrite mxE; apply: eq_bigr => k _; rewrite mxE mulr1.
  by rewrite A1 mxE.
pose N := \sum_j `|w 0 j|; have Np : 0 < N.
  have /rV0Pn[j wj] := w0; rewrite /N (bigD1 j) //= ltr_paddr ?normr_gt0 //.
  by apply: sumr_ge0.
rewrite -(ler_pmul2r Np) mul1r /N mulr_sumr.
apply: (@le_trans _ _ (\sum_j \sum_i `|w 0 i| * A i j)).
  apply: ler_sum => j _; rewrite -normrM.
  have -> : a * w 0 j = \sum_i w 0 i * A i j by move/matrixP: wA => /(_ 0 j); rewrite !mxE.
  apply: le_trans (ler_norm_sum _ _ _) _; apply: ler_sum => i _.
  by rewrite normrM (ger0_norm (A0 i j)).
rewrite exchange_big; apply: ler_sum => i _ /=.
by rewrite -mulr_sumr rowsum mulr1.
Qed.
End Real.

(* A matrix near one of rank 1 has one large singular value. *)
Section NearRankOne.
Variables (C : numClosedFieldType) (n d : nat) (X : 'M[C]_(n, 1 + d)) (x : 'cV[C]_n) (y : 'rV[C]_(1 + d)).
Variable t : C.
Local Notation l := (normF (x *m y)).
Local Notation k := ((1 + d)%:R : C).
Hypotheses (arch : archimedean C) (l0 : 0 < l) (t0 : 0 < t) (tk : 2%:R * (k * t) <= 1).
Hypothesis near : norm1 (X - x *m y) <= t * l.

Lemma near_shares s : singular_values X s -> exists i0, l / 2%:R <= s i0 /\
  forall i, i != i0 -> s i ^+ 2 <= (3%:R + 2%:R * k) * t * l ^+ 2.
Proof.
move=> S; have y0 : 0 < normF y.
  apply: normF_gt0; apply: contraTneq l0 => ->; rewrite mulmx0.
  by rewrite /normF (_ : norm2 0 = 0) ?sqrtC0 ?ltxx // /norm2 big1 // => i _; rewrite big1 // => j _;
    rewrite mxE normr0 expr0n.
have k0 : 0 < k by rewrite ltr0n.
have k1 : 1 <= k by rewrite ler1n.
have kt0 : 0 <= k * t by rewrite mulr_ge0 // ltW.
have kt : k * t <= 2%:R^-1 by rewrite -[2%:R^-1]mulr1 ler_pdivl_mull ?ltr0n.
have ay : normF (adj y) = normF y by rewrite /normF norm2_adjE.
pose r := ((1 - k * t) * l); have h2 : 2%:R^-1 <= 1 - k * t.
  rewrite ler_subr_addr -ler_subr_addl (le_trans kt) // -subr_ge0.
  by rewrite (_ : _ - _ = 0) //; field.
have p1 : 0 < 1 - k * t by apply: lt_le_trans h2; rewrite invr_gt0 ltr0n.
have r0 : 0 < r by rewrite mulr_gt0.
have dir : r * normF (adj y) <= normF (X *m adj y).
  have T := normF_tri (x *m y *m adj y) (X *m adj y).
  have N : norm1 (x *m y *m adj y - X *m adj y) <= k * t * l * normF (adj y).
    rewrite -norm1N opprB -mulmxBl; apply: le_trans (norm1_mul _ _) _.
    apply: le_trans (ler_pmul (norm1_ge0 _) (norm1_ge0 _) near (norm1_leF _)) _.
    by rewrite muln1 le_eqVlt; apply/orP; left; apply/eqP; ring.
  have F : normF (x *m y *m adj y) = l * normF (adj y).
    have -> : x *m y *m adj y = (normF y ^+ 2) *: x.
      rewrite -mulmxA [y *m _]mx11_scalar mul_mx_scalar; congr (_ *: _).
      by rewrite normF_sqr -norm2_adjE -[in RHS]norm2_adj adjK.
    rewrite normFZ ger0_norm ?exprn_ge0 ?normF_ge0 // outer_norm ay; ring.
  rewrite F in T; rewrite /r mulrBl mul1r mulrBl ler_subl_addr; apply: le_trans T _.
  by rewrite ler_add2l.
have [|||i0 Hi0] := @singular_top C n (1 + d) X s (adj y) (r ^+ 2) arch S.
- by rewrite exprn_gt0.
- by rewrite norm2_adjE -normF_sqr exprn_gt0.
- rewrite -!normF_sqr -exprMn ler_sqr ?nnegrE ?normF_ge0 ?mulr_ge0 ?normF_ge0 //.
  exact: ltW.
have s0 := S.1; exists i0; split.
  apply: (@le_trans _ _ r); last by rewrite -ler_sqr ?nnegrE // ltW.
  by rewrite /r [X in X <= _]mulrC ler_pmul2r.
move=> i ne; have sum := singular_sum S.
apply: (@le_trans _ _ (norm2 X - r ^+ 2)).
  rewrite ler_subr_addr -sum (bigD1 i) //= (bigD1 i0) /=; last by rewrite eq_sym.
  rewrite ler_add2l -[X in X <= _]addr0 ler_add // sumr_ge0 // => j _; rewrite exprn_ge0 //.
rewrite -normF_sqr ler_subl_addr; apply: (@le_trans _ _ ((l + t * l) ^+ 2)).
  rewrite ler_sqr ?nnegrE ?addr_ge0 ?normF_ge0 ?mulr_ge0 ?normF_ge0 ?(ltW t0) //.
  by apply: le_trans (normF_tri X (x *m y)) _; rewrite ler_add2l.
have t1 : t <= 1.
  apply: (@le_trans _ _ (k * t)); first by rewrite ler_pemull // ltW.
  by apply: le_trans kt _; rewrite invf_le1 ?ltr0n // ler1n.
rewrite -subr_ge0 /r.
have -> : (3%:R + 2%:R * k) * t * l ^+ 2 + ((1 - k * t) * l) ^+ 2 - (l + t * l) ^+ 2 =
  l ^+ 2 * (t * (1 - t) + (k * t) ^+ 2) by move: k l => k' l'; ring.
rewrite mulr_ge0 ?exprn_ge0 ?normF_ge0 // addr_ge0 ?exprn_ge0 //.
by rewrite mulr_ge0 ?(ltW t0) // subr_ge0.
Qed.
End NearRankOne.

Section Signs.
Variables (C : numClosedFieldType) (n d : nat) (A : 'M[C]_(1 + n)) (H : 'M[C]_(1 + d)) (a h : C).
Variables (v : 'cV[C]_(1 + n)) (u : 'cV[C]_(1 + d)).
Local Notation one := (e C (1 + n)).
Hypotheses (arch : archimedean C) (two_tokens : (0 < n)%N).
Hypotheses (A0 : forall i j, 0 <= A i j) (A1 : A *m one = one) (Hr : real_mx H).
Hypotheses (sa : simple A a) (sh : simple H h) (off_consensus : a != 1).
Hypotheses (vA : A *m v = a *: v) (uH : H *m u = h *: u) (v0 : v != 0) (u0 : u != 0).
Hypothesis dominates : forall h' a', root (char_poly H) h' -> root (char_poly A) a' ->
  (h', a') <> (h, a) -> `|1 + h' * a'| < `|1 + h * a|.
Local Notation mu := (1 + h * a).
Local Notation far X0 L := (evolve A H^T L X0).

(* (1): both are real and mu > 0. *)
Theorem pair_real : [/\ a \is Num.real, h \is Num.real & 0 < mu].
Proof.
have Ar : real_mx A by move=> i j; rewrite ger0_real.
have [ra rh] : root (char_poly A) a /\ root (char_poly H) h by case: sa; case: sh.
have [ac hc] : a^* = a /\ h^* = h.
  have [[-> ->]//|/eqP ne] := eqVneq (h^*, a^*) (h, a).
  have := dominates (conj_root Hr rh) (conj_root Ar ra) ne.
  have -> : 1 + h^* * a^* = mu^* by rewrite rmorphD rmorphM rmorph1.
  by rewrite norm_conjC ltxx.
have ar : a \is Num.real by apply/CrealP.
have hr : h \is Num.real by apply/CrealP.
split=> //; have /andP[lo hi] : -1 <= a <= 1.
  by rewrite -real_ler_norml //; exact: stochastic_root A0 A1 ra.
have r1 : root (char_poly A) 1.
  by rewrite (char_poly_quotient A1) rootM rootE hornerD hornerX hornerN hornerC subrr eqxx.
have beats : `|1 + h| < `|mu|.
  rewrite -[h in X in X < _]mulr1; apply: dominates => //.
  by case=> E; move: off_consensus; rewrite E eqxx.
have mr : mu \is Num.real by rewrite rpredD ?rpred1 ?rpredM.
have [m0|//] := real_leP mr (real0 C).
have up : `|mu| <= `|1 + h|.
  have h1r : 1 + h \is Num.real by rewrite rpredD ?rpred1.
  rewrite ler0_norm // opprD; have [h0|h0] := real_leP (real0 C) hr.
    apply: le_trans (real_ler_norm h1r); apply: (@le_trans _ _ (-1 + h)).
      by rewrite ler_add2l -mulrN ler_pimulr // ler_oppl.
    by rewrite ler_add2r (le_trans (lerN10 C)) // ler01.
  have nr : - (1 + h) \is Num.real by rewrite rpredN.
  have := real_ler_norm nr; rewrite normrN; apply: le_trans.
  by rewrite opprD ler_add2l ler_opp2 ler_nimulr // ltW.
by have := lt_le_trans beats up; rewrite ltxx.
Qed.

(* (1): X_L / mu^L tends to a multiple of v u^T that is not 0 (T1f_limits.rank_one_limit), and the
   effective rank to 1.                                                                          *)
Theorem rank_collapses (eta E : C -> C) : vanishes_at eta 0 -> vanishes_at eta 1 -> one_at_0 E ->
  generically (fun X0 : 'M[C]_(1 + n, 1 + d) => forall eps, 0 < eps -> exists N, forall L, (N <= L)%N ->
    forall s, singular_values (far X0 L) s -> `|effective_rank eta E s - 1| <= eps).
Proof.
move=> eta0 eta1 E0.
have [w [z [ex lim]]] := rank_one_limit arch two_tokens sa sh vA uH v0 u0 dominates.
exists w, z; split=> // X0 /lim[c c0 T] eps /(@effective_rank_near C (1 + d) _ _ eta0 eta1 E0)[b /andP[b0 b1] Hb].
have mu0 : mu != 0 := mu_n0 two_tokens sa sh vA v0 dominates.
pose l := normF (c *: v *m u^T); have l0 : 0 < l.
  rewrite /l outer_norm normFZ !mulr_gt0 ?normr_gt0 ?normF_gt0 //.
  by rewrite -(inj_eq (@trmx_inj _ _ _)) trmxK trmx0.
pose k : C := (1 + d)%:R; have k0 : 0 < k by rewrite ltr0n.
pose c1 : C := 3%:R + 2%:R * k; have c10 : 0 < c1 by rewrite addr_gt0 ?mulr_gt0 ?ltr0n.
have [t t0 Ht] : exists2 t : C, 0 < t & forall x : bool, t <= if x then (2%:R * k)^-1 else b ^+ 2 / (4%:R * c1).
  by apply: lower_bound => -[]; rewrite ?invr_gt0 ?divr_gt0 ?exprn_gt0 ?mulr_gt0 ?ltr0n.
have tl : 0 < t * l by rewrite mulr_gt0.
have T1 := tends_norm1 T.
have [N HN] := T1 _ tl; exists N => L /HN; rewrite subr0 ger0_norm ?norm1_ge0 // => close s S.
pose M := mu ^+ L; have M0 : 0 < `|M| by rewrite normr_gt0 expf_neq0.
pose x := (M * c) *: v.
have lx : normF (x *m u^T) = `|M| * l.
  by rewrite /l !outer_norm /x -scalerA normFZ mulrA.
have near : norm1 (far X0 L - x *m u^T) <= t * normF (x *m u^T).
  have -> : far X0 L - x *m u^T = M *: (mu ^- L *: far X0 L - c *: (v *m u^T)).
    by rewrite scalerBr scalerA mulfV ?expf_neq0 // scale1r /x -scalemxAl scalerA.
  have -> : forall Y : 'M[C]_(1 + n, 1 + d), norm1 (M *: Y) = `|M| * norm1 Y.
    move=> Y; rewrite /norm1 mulr_sumr; apply: eq_bigr => i _; rewrite mulr_sumr.
    by apply: eq_bigr => j _; rewrite mxE normrM.
  by rewrite lx mulrCA ler_pmul2l.
have lp : 0 < normF (x *m u^T) by rewrite lx mulr_gt0.
have tk : 2%:R * (k * t) <= 1.
  have := Ht true; rewrite -[(_ * _)^-1]mulr1 ler_pdivl_mull ?mulr_gt0 ?ltr0n //.
  by rewrite mulrA.
have [i0 [top rest]] := near_shares arch lp t0 tk near S; have s0 := S.1.
have top0 : 0 < s i0 by apply: lt_le_trans top; rewrite divr_gt0 ?ltr0n.
apply: (Hb s i0) => // i /rest Hi.
apply: (@le_trans _ _ (b * (normF (x *m u^T) / 2%:R))); last by rewrite ler_pmul2l.
rewrite -ler_sqr ?nnegrE ?mulr_ge0 ?invr_ge0 ?ler0n ?(ltW b0) ?(ltW lp) //.
apply: le_trans Hi _; have := Ht false; rewrite ler_pdivl_mulr ?mulr_gt0 ?ltr0n // => Htb.
have -> : (b * (normF (x *m u^T) / 2%:R)) ^+ 2 = b ^+ 2 / 4%:R * normF (x *m u^T) ^+ 2 by field.
rewrite ler_wpmul2r ?exprn_ge0 ?normF_ge0 // ler_pdivl_mulr ?ltr0n //.
by rewrite -/k -/c1 [c1 * t]mulrC -mulrA [c1 * _]mulrC.
Qed.

Hypothesis vr : real_mx v.
Lemma cosineZ m (c : C) (x y : 'rV[C]_m) : c != 0 -> cosine (c *: x) (c *: y) = cosine x y.
Proof.
move=> c0; rewrite /cosine !normFZ.
have -> : dot (c *: x) (c *: y) = `|c| ^+ 2 * dot x y.
  by rewrite /dot mulr_sumr; apply: eq_bigr => j _; rewrite !mxE rmorphM normCK mulrACA.
have c1 : `|c| != 0 by rewrite normr_eq0.
by rewrite mulrACA -expr2 -mulf_div divff ?mul1r // expf_neq0.
Qed.

(* (2): cos(x_i, x_k) -> sign(v_i v_k). *)
Theorem cosines_tend : generically (fun X0 : 'M[C]_(1 + n, 1 + d) => forall i k,
  v i 0 * v k 0 != 0 -> tends (fun L => cosine (row i (far X0 L)) (row k (far X0 L))) (Num.sg (v i 0 * v k 0))).
Proof.
have [w [z [ex lim]]] := rank_one_limit arch two_tokens sa sh vA uH v0 u0 dominates.
exists w, z; split=> // X0 /lim[c c0 T] i k; rewrite mulf_eq0 negb_or => /andP[vi vk].
have mu0 : mu != 0 := mu_n0 two_tokens sa sh vA v0 dominates.
have un : normF u^T != 0.
  by rewrite gt_eqF // normF_gt0 // -(inj_eq (@trmx_inj _ _ _)) trmxK trmx0.
have R j : row j (c *: (v *m u^T)) = (c * v j 0) *: u^T.
  by apply/rowP => m; rewrite !mxE big_ord1 !mxE mulrA.
have Tr j : tendsm (fun L => row j (mu ^- L *: far X0 L)) ((c * v j 0) *: u^T).
  by move=> m m'; rewrite -R mxE; apply: tends_eq (T j m') => L; rewrite [RHS]mxE.
have nj j : v j 0 != 0 -> normF ((c * v j 0) *: u^T) != 0.
  by move=> vj; rewrite normFZ mulf_neq0 // normr_eq0 mulf_neq0.
have := tends_cosine (Tr i) (Tr k) (nj i vi) (nj k vk).
have -> : cosine ((c * v i 0) *: u^T) ((c * v k 0) *: u^T) = Num.sg (v i 0 * v k 0).
  have pr : v i 0 * v k 0 \is Num.real by rewrite rpredM.
  have p0 : v i 0 * v k 0 != 0 by rewrite mulf_neq0.
  rewrite -!scalerA cosineZ // /cosine !normFZ.
  have -> : dot (v i 0 *: u^T) (v k 0 *: u^T) = v i 0 * v k 0 * normF u^T ^+ 2.
    rewrite -dot_self /dot mulr_sumr; apply: eq_bigr => j _.
    by rewrite !mxE rmorphM (conj_Creal (vr k 0)) mulrACA.
  have a0 : `|v i 0 * v k 0| != 0 by rewrite normr_eq0.
  rewrite [X in _ / X]mulrACA -normrM -expr2 -mulf_div divff ?mulr1 ?expf_neq0 //.
  by apply: (mulIf a0); rewrite divfK // sgr_def p0 mulr1n real_mulr_sign_norm.
apply: tends_eq => L; rewrite -[RHS](cosineZ _ _ (invr_neq0 (expf_neq0 L mu0))).
by congr cosine; apply/rowP => m; rewrite !mxE.
Qed.

(* (4): the mean cosine of two different tokens, where no v_k is 0; with one negative token it tends
   to (N - 4)/N, N = 1 + n.                                                                      *)
Definition positive := #|[pred i | 0 < v i 0]|.
Definition negative := #|[pred i | v i 0 < 0]|.
Local Notation N := ((1 + n)%:R : C).
Theorem mean_cosine : (forall i, v i 0 != 0) -> generically (fun X0 : 'M[C]_(1 + n, 1 + d) =>
    tends (fun L => (\sum_i \sum_(k | k != i) cosine (row i (far X0 L)) (row k (far X0 L))) / (N * (N - 1)))
      (((positive%:R - negative%:R) ^+ 2 - N) / (N * (N - 1)))) /\
  (negative = 1%N -> ((positive%:R - negative%:R) ^+ 2 - N) / (N * (N - 1)) = (N - 4%:R) / N).
Proof.
move=> vn; have pos i : (0 < v i 0) = ~~ (v i 0 < 0).
  by rewrite real_ltNge ?rpred0 ?(vr i 0) // le_eqVlt (negbTE (vn i)).
have count : (positive + negative = 1 + n)%N.
  rewrite -[RHS]card_ord -(cardC [pred i | v i 0 < 0]) addnC; congr (_ + _)%N.
  by apply: eq_card => i; rewrite !inE pos.
have sq i : Num.sg (v i 0) * Num.sg (v i 0) = 1.
  by rewrite -expr2 sqr_sg vn.
have sum : \sum_i Num.sg (v i 0) = positive%:R - negative%:R.
  rewrite (bigID (fun i => 0 < v i 0)) /= (eq_bigr (fun=> 1)) => [|i vi]; last by rewrite gtr0_sg.
  rewrite sumr_const; congr (_ + _); rewrite (eq_bigr (fun=> -1)) => [|i]; last first.
    by rewrite pos negbK => vi; rewrite ltr0_sg.
  rewrite sumrN sumr_const; congr (- _%:R); apply: eq_card => i.
  by rewrite !inE unfold_in pos negbK.
have S2 : \sum_i \sum_(k | k != i) Num.sg (v i 0 * v k 0) = (positive%:R - negative%:R) ^+ 2 - N.
  have -> : N = \sum_(i < 1 + n) (1 : C) by rewrite sumr_const card_ord.
  rewrite -sum expr2 mulr_suml -sumrB; apply: eq_bigr => i _.
  rewrite mulr_sumr [in RHS](bigD1 i) //= sq [1 + _]addrC addrK; apply: eq_bigr => k _.
  have split j : 0 < v j 0 \/ v j 0 < 0.
    by case: (boolP (0 < v j 0)) => [|]; [left | rewrite pos negbK; right].
  have [[i0|i0] [k0|k0]] := (split i, split k).
  - by rewrite !gtr0_sg ?mulr_gt0 // mulr1.
  - by rewrite (gtr0_sg i0) (ltr0_sg k0) ltr0_sg ?mul1r // pmulr_rlt0.
  - by rewrite (ltr0_sg i0) (gtr0_sg k0) ltr0_sg ?mulr1 // pmulr_llt0.
  - by rewrite (ltr0_sg i0) (ltr0_sg k0) gtr0_sg ?mulrNN ?mulr1 // nmulr_rgt0.
split.
  have [w [z [ex lim]]] := cosines_tend; exists w, z; split=> // X0 /lim T.
  rewrite -S2; apply: tendsM (tends_const _).
  apply: tends_sum => i _; apply: tends_sum => k _.
  by apply: T; rewrite mulf_neq0.
move=> n1; have N0 : N != 0 by rewrite pnatr_eq0.
have N1 : N - 1 != 0.
  by rewrite natrD addrAC subrr add0r pnatr_eq0 -lt0n.
have -> : positive%:R = N - 1 :> C.
  by rewrite -count natrD n1 addrK.
by rewrite n1; move: N0 N1; move: N => m m0 m1; field; rewrite m0.
Qed.
End Signs.

(* The hypotheses hold for attention that exchanges two tokens and H = -1. *)
Lemma real_sign : real_mx sign. Proof. by move=> i j; rewrite mxE rpredX // rpredN rpred1. Qed.
Lemma real_minus1 : real_mx minus1.
Proof. by move=> i j; rewrite mxE rpredMn // rpredN rpred1. Qed.
Definition pair_real_instance :=
  @pair_real algCnumClosedField 1 0 swap minus1 (-1) (-1)
    swap_ge0 swap1 real_minus1 simple_swap simple_minus1 minus1_neq1 swap_dominates.
Definition rank_collapses_instance :=
  @rank_collapses algCnumClosedField 1 0 swap minus1 (-1) (-1) sign 1%:M
    algC_archimedean isT simple_swap simple_minus1 swap_sign minus1_1 sign_neq0 one_neq0 swap_dominates.
Definition cosines_tend_instance :=
  @cosines_tend algCnumClosedField 1 0 swap minus1 (-1) (-1) sign 1%:M
    algC_archimedean isT simple_swap simple_minus1 swap_sign minus1_1 sign_neq0 one_neq0 swap_dominates real_sign.
Definition mean_cosine_instance :=
  @mean_cosine algCnumClosedField 1 0 swap minus1 (-1) (-1) sign 1%:M
    algC_archimedean isT simple_swap simple_minus1 swap_sign minus1_1 sign_neq0 one_neq0 swap_dominates real_sign.
