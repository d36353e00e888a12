(* T7b-certificate beyond one feature on [-1, 0]: weights down to -s, several features and heads in a
   common basis, any weights by their norms (any norm of the rows), the symmetric head, and tau from
   logits.  Attention of every layer arbitrary: computed from the state, the depth, anything.
   Ordered field, no axioms.                                                                     *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
Require Import T7b_certificate.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* Clause 2: one feature, h in [-s, 0], 1 <= s < 2/(1 + t). *)
Section Beyond.
Variables (R : realFieldType) (n' : nat).
Local Notation n := n'.+1.
Implicit Types (x : 'I_n -> R) (A : 'I_n -> 'I_n -> R) (h t s K : R).

Lemma one_layer_beyond h A x t s K : stochastic A -> tau_le A t -> - s <= h <= 0 -> 0 <= t < 1 ->
  1 <= s -> s * (1 + t) < 2%:R -> kk R n' * s <= K * (2%:R - s * (1 + t)) -> 0 <= K ->
  0 < osc x -> `|mean x| <= K * osc x ->
  0 < osc (layer h A x) /\ `|mean (layer h A x)| <= K * osc (layer h A x).
Proof.
move=> S T /andP[h1 h0] /andP[t0 t1] s1 st kK K0 o0 mx.
have nh : `|h| = - h by rewrite ler0_norm.
have g0 : 0 <= - h by rewrite oppr_ge0.
have gs : - h <= s by rewrite ler_oppl.
have k0 : 0 <= kk R n' by rewrite subr_ge0 invf_le1 ?ltr0n // ler1n.
have grow : (1 - - h * t) * osc x <= osc (layer h A x).
  apply: le_trans (osc_ge _ (top x) (bot x)).
  have -> : layer h A x (top x) - layer h A x (bot x) =
            osc x + h * (app A x (top x) - app A x (bot x)) by rewrite /layer /osc; ring.
  have -> : (1 - - h * t) * osc x = osc x - (- h) * (t * osc x) by ring.
  rewrite ler_add2l ler_oppl -mulNr.
  apply: le_trans (ler_norm _) _; rewrite normrM normrN nh.
  by rewrite ler_wpmul2l // contraction.
have gt1 : - h * (1 + t) <= s * (1 + t) by rewrite ler_wpmul2r // addr_ge0 ?ler01.
have pos : 0 < 1 - - h * t.
  have g2 : - h * (1 + t) < 2%:R by apply: le_lt_trans st.
  have [le1|gt] := lerP (- h) 1.
    rewrite subr_gt0; apply: le_lt_trans t1; rewrite -[X in _ <= X]mul1r ler_wpmul2r //.
  have -> : 1 - - h * t = (2%:R - - h * (1 + t)) + (- h - 1) by ring.
  by rewrite addr_gt0 // subr_gt0.
split; first by apply: lt_le_trans grow; rewrite mulr_gt0.
apply: (@le_trans _ _ (K * ((1 - - h * t) * osc x))); last by rewrite ler_wpmul2l.
rewrite mean_layer; apply: le_trans (ler_norm_add _ _) _.
have -> : `|h * (mean (app A x) - mean x)| = - h * `|mean (app A x) - mean x| by rewrite normrM nh.
rewrite normrM.
apply: (@le_trans _ _ (`|1 + h| * (K * osc x) + - h * (kk R n' * osc x))).
  apply: ler_add; first by rewrite ler_wpmul2l.
  by rewrite ler_wpmul2l // mean_moves.
have -> : `|1 + h| * (K * osc x) + - h * (kk R n' * osc x) =
  (`|1 + h| * K + - h * kk R n') * osc x by ring.
rewrite mulrA ler_wpmul2r //; first exact: ltW.
have [le1|gt] := lerP (- h) 1.
  have -> : `|1 + h| = 1 - - h by rewrite opprK; apply: ger0_norm; rewrite addrC -ler_subl_addr sub0r ler_oppl.
  have kt : kk R n' <= K * (1 - t).
    have sp : 0 < s by apply: lt_le_trans s1; exact: ltr01.
    rewrite -(ler_pmul2r sp); apply: le_trans kK _; rewrite -mulrA ler_wpmul2l //.
    have -> : (1 - t) * s = 2%:R - s * (1 + t) + 2%:R * (s - 1) by ring.
    by rewrite ler_addl mulr_ge0 ?ler0n // subr_ge0.
  have -> : K * (1 - - h * t) = (1 - - h) * K + - h * (K * (1 - t)) by ring.
  by rewrite ler_add2l ler_wpmul2l.
have -> : `|1 + h| = - h - 1.
  rewrite ltr0_norm ?opprD 1?addrC // -ltr_subr_addr sub0r.
  by rewrite ltr_oppr.
have -> : K * (1 - - h * t) = (- h - 1) * K + K * (2%:R - - h * (1 + t)) by ring.
rewrite ler_add2l.
apply: (@le_trans _ _ (s * kk R n')); first by rewrite ler_wpmul2r.
rewrite mulrC; apply: le_trans kK _; rewrite ler_wpmul2l // ler_add2l ler_opp2.
exact: gt1.
Qed.

Lemma floor_of x K : 0 <= K -> 0 <= osc x -> `|mean x| <= K * osc x ->
  LFC2 x <= 2%:R * n%:R * K ^+ 2 * HFC2 x.
Proof.
move=> K0 o0 mx.
have mm : mean x ^+ 2 <= K ^+ 2 * osc x ^+ 2.
  by rewrite -exprMn -[X in X <= _]real_normK ?num_real // ler_expn2r ?nnegrE ?normr_ge0 // mulr_ge0.
have -> : 2%:R * n%:R * K ^+ 2 * HFC2 x = n%:R * (K ^+ 2 * (2%:R * HFC2 x)) by ring.
rewrite /LFC2 ler_wpmul2l ?ler0n //; apply: le_trans mm _.
by rewrite ler_wpmul2l ?sqr_ge0 ?osc_HFC.
Qed.

Variables (A : nat -> ('I_n -> R) -> 'I_n -> 'I_n -> R) (h : nat -> R) (t s : R).
Variable x : 'I_n -> R.
Hypothesis stochA : forall l, stochastic (A l (state A h l x)).
Hypothesis tauA : forall l, tau_le (A l (state A h l x)) t.
Hypothesis t_range : 0 <= t < 1.
Hypothesis s_range : 1 <= s < 2%:R / (1 + t).
Hypothesis h_range : forall l, - s <= h l <= 0.

(* u_L = |m|/osc <= K = max(u_0, (1 - 1/n) s/(2 - s (1 + t))), and HFC/LFC >= 1/(K sqrt(2n)) *)
Theorem beyond_minus_one L : 0 < osc x ->
  let K := Num.max (`|mean x| / osc x) ((1 - n%:R^-1) * s / (2%:R - s * (1 + t))) in
  let y := state A h L x in
  [/\ 0 < osc y, `|mean y| / osc y <= K & LFC2 y <= 2%:R * n%:R * K ^+ 2 * HFC2 y].
Proof.
move=> o0 K y; rewrite /y {y}; case/andP: (t_range) => t0 t1; case/andP: s_range => s1 s2.
have st : s * (1 + t) < 2%:R.
  by move: s2; rewrite ltr_pdivl_mulr // (ltr_paddr t0 ltr01).
have p0 : 0 < 2%:R - s * (1 + t) by rewrite subr_gt0.
have K0 : 0 <= K by rewrite le_maxr divr_ge0 // ltW.
have kK : kk R n' * s <= K * (2%:R - s * (1 + t)).
  by rewrite -ler_pdivr_mulr // /K le_maxr lexx orbT.
have mx : `|mean x| <= K * osc x by rewrite -ler_pdivr_mulr // /K le_maxr lexx.
suff [oL mL] : 0 < osc (state A h L x) /\ `|mean (state A h L x)| <= K * osc (state A h L x).
  by split=> //; [rewrite ler_pdivr_mulr | apply: floor_of => //; exact: ltW].
elim: L => [//|L [oL mL]] /=.
by apply: (one_layer_beyond (stochA _) (tauA _) (h_range L) t_range s1 st kK K0 oL mL).
Qed.
End Beyond.

(* Clause 5: any weights, by any norm of the rows. *)
Section Norm.
Variables (R : realFieldType) (n' d : nat) (N : 'rV[R]_d -> R).
Local Notation n := n'.+1.
Hypothesis N_ge0 : forall v, 0 <= N v.
Hypothesis N_scale : forall a v, N (a *: v) = `|a| * N v.
Hypothesis N_add : forall u v, N (u + v) <= N u + N v.
Implicit Types (X : 'M[R]_(n, d)) (A : 'M[R]_n) (c : 'I_n -> R).

Definition rowmean X : 'rV[R]_d := n%:R^-1 *: \sum_i row i X.
Definition far X : 'I_n * 'I_n :=
  [arg max_(p > (ord0, ord0)) N (row p.1 X - row p.2 X)]%O.
Definition diam X : R := N (row (far X).1 X - row (far X).2 X).

Lemma diam_ge X i k : N (row i X - row k X) <= diam X.
Proof. by rewrite /diam /far; case: arg_maxP => //= p _ /(_ (i, k)); apply. Qed.
Lemma diam_ge0 X : 0 <= diam X. Proof. exact: N_ge0. Qed.
Lemma N_zero : N 0 = 0. Proof. by rewrite -(scale0r 0) N_scale normr0 mul0r. Qed.
Lemma N_sum (I : Type) (r : seq I) (P : pred I) (F : I -> 'rV[R]_d) :
  N (\sum_(i <- r | P i) F i) <= \sum_(i <- r | P i) N (F i).
Proof.
elim/big_rec2: _ => [|i y x _ H]; first by rewrite N_zero.
by apply: le_trans (N_add _ _) _; rewrite ler_add2l.
Qed.
Lemma N_opp v : N (- v) = N v. Proof. by rewrite -scaleN1r N_scale normrN1 mul1r. Qed.
Lemma N_sub u v : N u - N v <= N (u - v).
Proof. by rewrite ler_subl_addr; apply: le_trans (N_add _ _); rewrite subrK. Qed.

(* Coefficients that sum to 0: half their absolute sum times the diameter. *)
Lemma spread c X : \sum_j c j = 0 ->
  N (\sum_j c j *: row j X) <= 2%:R^-1 * (\sum_j `|c j|) * diam X.
Proof.
move=> c0; pose cp j := 2%:R^-1 * (`|c j| + c j); pose cm j := 2%:R^-1 * (`|c j| - c j).
set s := 2%:R^-1 * \sum_j `|c j|.
have h0 : (0 : R) <= 2%:R^-1 by rewrite invr_ge0 ler0n.
have cp0 j : 0 <= cp j by rewrite mulr_ge0 // -ler_subl_addr sub0r -normrN ler_norm.
have cm0 j : 0 <= cm j by rewrite mulr_ge0 // subr_ge0 ler_norm.
have sp : \sum_j cp j = s by rewrite -mulr_sumr big_split /= c0 addr0.
have sm : \sum_j cm j = s by rewrite -mulr_sumr sumrB c0 subr0.
have dif j : c j = cp j - cm j by rewrite /cp /cm; field.
have [s0|sn] := eqVneq s 0.
  have z j : c j = 0.
    have H (f : 'I_n -> R) : (forall i, 0 <= f i) -> \sum_i f i = 0 -> f j = 0.
      by move=> f0 /psumr_eq0P H; apply: H.
    by rewrite dif (H cp) ?(H cm) ?subr0 ?sp ?sm.
  rewrite big1 => [|j _]; last by rewrite z scale0r.
  by rewrite N_zero s0 mul0r.
have s1 : 0 < s by rewrite lt_def sn -sp sumr_ge0.
have E : s *: (\sum_j c j *: row j X) = \sum_j \sum_l (cp j * cm l) *: (row j X - row l X).
  transitivity (\sum_j (s * cp j) *: row j X - \sum_l (s * cm l) *: row l X).
    rewrite -sumrB scaler_sumr; apply: eq_bigr => j _.
    by rewrite scalerA -scalerBl -mulrBr -dif.
  have -> : \sum_j \sum_l (cp j * cm l) *: (row j X - row l X) =
    \sum_j \sum_l (cp j * cm l) *: row j X - \sum_j \sum_l (cp j * cm l) *: row l X.
    rewrite -sumrB; apply: eq_bigr => j _; rewrite -sumrB; apply: eq_bigr => l _.
    by rewrite scalerBr.
  congr (_ - _); first by apply: eq_bigr => j _; rewrite -scaler_suml -mulr_sumr sm mulrC.
  rewrite exchange_big; apply: eq_bigr => l _.
  by rewrite -scaler_suml -mulr_suml sp.
rewrite -(ler_pmul2l s1) -{1}(ger0_norm (ltW s1)) -N_scale E.
apply: le_trans (N_sum _ _ _) _.
have -> : s * (s * diam X) = \sum_j \sum_l cp j * cm l * diam X.
  transitivity (\sum_j cp j * (s * diam X)); first by rewrite -mulr_suml sp.
  by apply: eq_bigr => j _; rewrite -mulr_suml -mulr_sumr sm mulrA.
apply: ler_sum => j _; apply: le_trans (N_sum _ _ _) _; apply: ler_sum => l _.
rewrite N_scale (ger0_norm (mulr_ge0 (cp0 j) (cm0 l))).
by apply: ler_wpmul2l; [rewrite mulr_ge0 | exact: diam_ge].
Qed.

Lemma row_app A X i : row i (A *m X) = \sum_j A i j *: row j X.
Proof. by rewrite row_mul mulmx_sum_row; apply: eq_bigr => j _; rewrite mxE. Qed.

Lemma contraction_rows A t X i k : stochastic A -> tau_le A t ->
  N (row i (A *m X) - row k (A *m X)) <= t * diam X.
Proof.
move=> [_ S] T.
have -> : row i (A *m X) - row k (A *m X) = \sum_j (A i j - A k j) *: row j X.
  by rewrite !row_app -sumrB; apply: eq_bigr => j _; rewrite scalerBl.
apply: le_trans (spread _ _) _; first by rewrite sumrB !S subrr.
apply: ler_wpmul2r; first exact: diam_ge0.
rewrite -[X in _ <= X](mulKf (_ : 2%:R != 0 :> R)) ?pnatr_eq0 //.
by rewrite ler_wpmul2l ?invr_ge0 ?ler0n.
Qed.

(* The mean row of A is within 1 - 1/n of the uniform one. *)
Lemma mean_row (w : 'I_n -> R) : (forall j, 0 <= w j) -> \sum_j w j = 1 ->
  \sum_j `|w j - n%:R^-1| <= 2%:R * kk R n'.
Proof.
move=> w0 w1; have i0 : 0 <= n%:R^-1 :> R by rewrite invr_ge0 ler0n.
have E j : `|w j - n%:R^-1| = w j + n%:R^-1 - 2%:R * Num.min (w j) n%:R^-1.
  by move: (n%:R^-1 : R) (w j) => b c; case: (lerP c b) => H; ring.
have sn : \sum_(j < n) n%:R^-1 = 1 :> R.
  by rewrite sumr_const card_ord -[LHS]mulr_natl mulfV // pnatr_eq0.
rewrite (eq_bigr _ (fun j _ => E j)) sumrB big_split /= w1 sn -mulr_sumr /kk.
have -> : 2%:R * (1 - n%:R^-1) = 1 + 1 - 2%:R * n%:R^-1 :> R by ring.
rewrite ler_add2l ler_opp2 ler_wpmul2l ?ler0n //.
have m0 j : 0 <= Num.min (w j) n%:R^-1 by rewrite le_minr w0.
have [/existsP[k wk]|/existsPn no] := boolP [exists k, n%:R^-1 <= w k].
  have mk : Num.min (w k) n%:R^-1 = n%:R^-1 by apply/min_idPr.
  by rewrite (bigD1 k) //= mk ler_addl sumr_ge0.
have -> : \sum_j Num.min (w j) n%:R^-1 = 1.
  rewrite -[RHS]w1; apply: eq_bigr => j _; apply/min_idPl.
  by move: (no j); rewrite -ltNge => /ltW.
by rewrite invf_le1 ?ltr0n // ler1n.
Qed.

Lemma mean_moves_rows A X : stochastic A -> N (rowmean (A *m X) - rowmean X) <= kk R n' * diam X.
Proof.
move=> [P S]; pose w j := n%:R^-1 * \sum_i A i j.
have w0 j : 0 <= w j by rewrite mulr_ge0 ?invr_ge0 ?ler0n // sumr_ge0.
have w1 : \sum_j w j = 1.
  rewrite -mulr_sumr exchange_big /= (eq_bigr _ (fun i _ => S i)) sumr_const card_ord.
  by rewrite mulVf // pnatr_eq0.
have sn : \sum_(j < n) n%:R^-1 = 1 :> R.
  by rewrite sumr_const card_ord -[LHS]mulr_natl mulfV // pnatr_eq0.
have -> : rowmean (A *m X) - rowmean X = \sum_j (w j - n%:R^-1) *: row j X.
  rewrite /rowmean (eq_bigr _ (fun i _ => row_app A X i)) exchange_big /=.
  have -> : \sum_j (w j - n%:R^-1) *: row j X =
    \sum_j w j *: row j X - \sum_j n%:R^-1 *: row j X.
    by rewrite -sumrB; apply: eq_bigr => j _; rewrite scalerBl.
  congr (_ - _); last by rewrite scaler_sumr.
  by rewrite scaler_sumr; apply: eq_bigr => j _; rewrite -scaler_suml scalerA.
apply: le_trans (spread _ _) _; first by rewrite sumrB w1 sn subrr.
apply: ler_wpmul2r; first exact: diam_ge0.
rewrite -[X in _ <= X](mulKf (_ : 2%:R != 0 :> R)) ?pnatr_eq0 //.
by rewrite ler_wpmul2l ?invr_ge0 ?ler0n // mean_row.
Qed.

(* Any number of heads, A and W of each layer computed from anything. *)
Variables (k : nat).
Definition heads_layer (A : 'I_k -> 'M[R]_n) (W : 'I_k -> 'M[R]_d) X : 'M[R]_(n, d) :=
  X + \sum_g A g *m X *m W g.

Lemma row_layer (A : 'I_k -> 'M[R]_n) (W : 'I_k -> 'M[R]_d) X i :
  row i (heads_layer A W X) = row i X + \sum_g row i (A g *m X) *m W g.
Proof.
rewrite /heads_layer linearD linear_sum; congr (_ + _).
by apply: eq_bigr => g _; rewrite -row_mul.
Qed.

Section Step.
Variables (A : 'I_k -> 'M[R]_n) (W : 'I_k -> 'M[R]_d) (wg : 'I_k -> R) (t r w : R).
Hypothesis stochA : forall g, stochastic (A g).
Hypothesis tauA : forall g, tau_le (A g) t.
Hypothesis norm_W : forall g v, N (v *m W g) <= wg g * N v.
Hypothesis wg_ge0 : forall g, 0 <= wg g.
Hypothesis sum_w : \sum_g wg g <= w.
Hypothesis norm_IS : forall v, N (v *m (1%:M + \sum_g W g)) <= r * N v.
Hypothesis t_ge0 : 0 <= t.

Lemma diam_grows X : (1 - t * w) * diam X <= diam (heads_layer A W X).
Proof.
set i := (far X).1; set l := (far X).2.
apply: le_trans (diam_ge _ i l).
have -> : row i (heads_layer A W X) - row l (heads_layer A W X) =
  (row i X - row l X) - - \sum_g (row i (A g *m X) - row l (A g *m X)) *m W g.
  rewrite opprK !row_layer opprD addrACA; congr (_ + _).
  by rewrite -sumrB; apply: eq_bigr => g _; rewrite mulmxBl.
apply: le_trans (N_sub _ _); rewrite N_opp -/(diam X) mulrBl mul1r ler_add2l ler_opp2.
apply: le_trans (N_sum _ _ _) _.
apply: (@le_trans _ _ (\sum_g wg g * (t * diam X))).
  apply: ler_sum => g _; apply: le_trans (norm_W _ _) _; rewrite ler_wpmul2l //.
  exact: contraction_rows.
rewrite -mulr_suml [t * w]mulrC -mulrA ler_wpmul2r //.
by rewrite mulr_ge0 // diam_ge0.
Qed.

Lemma mean_heads X : rowmean (heads_layer A W X) =
  rowmean X *m (1%:M + \sum_g W g) + \sum_g (rowmean (A g *m X) - rowmean X) *m W g.
Proof.
have E g : rowmean (A g *m X *m W g) = rowmean (A g *m X) *m W g.
  by rewrite /rowmean -scalemxAl mulmx_suml; congr (_ *: _); apply: eq_bigr => i _; rewrite row_mul.
have -> : rowmean (heads_layer A W X) = rowmean X + \sum_g rowmean (A g *m X) *m W g.
  rewrite -(eq_bigr _ (fun g _ => E g)) /rowmean -scaler_sumr -scalerDr exchange_big /= -big_split /=.
  by congr (_ *: _); apply: eq_bigr => i _; rewrite linearD linear_sum.
rewrite mulmxDr mulmx1 -addrA; congr (_ + _).
rewrite mulmx_sumr -big_split /=; apply: eq_bigr => g _.
by rewrite mulmxBl addrC subrK.
Qed.

Lemma mean_grows X : N (rowmean (heads_layer A W X)) <= r * N (rowmean X) + kk R n' * w * diam X.
Proof.
rewrite mean_heads; apply: le_trans (N_add _ _) _; apply: ler_add => //.
apply: le_trans (N_sum _ _ _) _.
apply: (@le_trans _ _ (\sum_g wg g * (kk R n' * diam X))).
  apply: ler_sum => g _; apply: le_trans (norm_W _ _) _; rewrite ler_wpmul2l //.
  exact: mean_moves_rows.
have k0 : 0 <= kk R n' by rewrite subr_ge0 invf_le1 ?ltr0n // ler1n.
rewrite -mulr_suml (_ : kk R n' * w * diam X = w * (kk R n' * diam X)); last by ring.
by rewrite ler_wpmul2r // mulr_ge0 // diam_ge0.
Qed.
End Step.

Variables (A : nat -> 'M[R]_(n, d) -> 'I_k -> 'M[R]_n).
Variables (W : nat -> 'M[R]_(n, d) -> 'I_k -> 'M[R]_d) (wg : nat -> 'I_k -> R) (t r w : R).
Fixpoint heads_state L X := if L is l.+1 then
  heads_layer (A l (heads_state l X)) (W l (heads_state l X)) (heads_state l X) else X.
Variable X : 'M[R]_(n, d).
Local Notation A_at l := (A l (heads_state l X)).
Local Notation W_at l := (W l (heads_state l X)).
Hypothesis stochA : forall l g, stochastic (A_at l g).
Hypothesis tauA : forall l g, tau_le (A_at l g) t.
Hypothesis wg_ge0 : forall l g, 0 <= wg l g.
Hypothesis norm_W : forall l g v, N (v *m W_at l g) <= wg l g * N v.
Hypothesis sum_w : forall l, \sum_g wg l g <= w.
Hypothesis norm_IS : forall l v, N (v *m (1%:M + \sum_g W_at l g)) <= r * N v.
Hypothesis t_ge0 : 0 <= t.
Hypothesis r_ge0 : 0 <= r.
Hypothesis rtw : r + t * w < 1.

(* u_L = ||m||/diam <= max(u_0, (1 - 1/n) w/(1 - t w - r)) *)
Theorem matrix_certificate L : 0 < diam X ->
  0 < diam (heads_state L X) /\ N (rowmean (heads_state L X)) / diam (heads_state L X) <=
    Num.max (N (rowmean X) / diam X) ((1 - n%:R^-1) * w / (1 - t * w - r)).
Proof.
move=> d0; set K := Num.max _ _.
have K0 : 0 <= K by rewrite le_maxr divr_ge0 ?N_ge0 // ltW.
have p0 : 0 < 1 - t * w - r by rewrite subr_gt0 ltr_subr_addr.
have kK : kk R n' * w <= K * (1 - t * w - r) by rewrite -ler_pdivr_mulr // /K le_maxr lexx orbT.
have q0 : 0 < 1 - t * w by apply: lt_le_trans p0 _; rewrite ler_subl_addr ler_addl.
have mx : N (rowmean X) <= K * diam X by rewrite -ler_pdivr_mulr // /K le_maxr lexx.
suff [oL mL] : 0 < diam (heads_state L X) /\ N (rowmean (heads_state L X)) <= K * diam (heads_state L X).
  by split=> //; rewrite ler_pdivr_mulr.
elim: L => [//|L [oL mL]] /=; set Y := heads_state L X in oL mL *.
have G := diam_grows (stochA L) (tauA L) (norm_W L) (wg_ge0 L) (sum_w L) t_ge0 Y.
have M := mean_grows (stochA L) (norm_W L) (wg_ge0 L) (sum_w L) (norm_IS L) Y.
split; first by apply: lt_le_trans G; rewrite mulr_gt0.
apply: (le_trans M); apply: (@le_trans _ _ (K * ((1 - t * w) * diam Y))); last by rewrite ler_wpmul2l.
apply: (@le_trans _ _ (r * (K * diam Y) + kk R n' * w * diam Y)).
  by rewrite ler_add2r ler_wpmul2l.
have -> : r * (K * diam Y) + kk R n' * w * diam Y = (r * K + kk R n' * w) * diam Y by ring.
rewrite mulrA ler_wpmul2r ?diam_ge0 //.
have -> : K * (1 - t * w) = r * K + K * (1 - t * w - r) by ring.
by rewrite ler_add2l.
Qed.
End Norm.

(* The hypotheses hold for uniform attention, the norm of one feature and W = -1. *)
Section Instances.
Variable R : realFieldType.
Definition beyond_minus_one_instance (x : 'I_2 -> R) :=
  @beyond_minus_one R 1 (@everywhere R) (fun=> -1) 0 1 x (fun=> (even_stochastic R)) (fun=> (even_tau R)) (zero_range R) (one_range R) (minus1_range R).
Definition size1 (v : 'rV[R]_1) := `|v 0 0|.
Lemma size1_ge0 v : 0 <= size1 v. Proof. exact: normr_ge0. Qed.
Lemma size1_scale a v : size1 (a *: v) = `|a| * size1 v. Proof. by rewrite /size1 mxE normrM. Qed.
Lemma size1_add u v : size1 (u + v) <= size1 u + size1 v.
Proof. by rewrite /size1 mxE ler_norm_add. Qed.
Definition attends (_ : nat) (_ : 'M[R]_(2, 1)) (_ : 'I_1) := (@even R).
Definition turns (_ : nat) (_ : 'M[R]_(2, 1)) (_ : 'I_1) : 'M[R]_1 := -1%:M.
Lemma size1_turns (l : nat) (g : 'I_1) v : size1 (v *m - 1%:M) <= 1 * size1 v.
Proof. by rewrite mulmxN mulmx1 /size1 mxE normrN mul1r. Qed.
Lemma sum_one (l : nat) : \sum_(g < 1) (1 : R) <= 1. Proof. by rewrite big_ord1. Qed.
Lemma size1_rest (l : nat) v : size1 (v *m (1%:M + \sum_(g < 1) - 1%:M)) <= 0 * size1 v.
Proof. by rewrite big_ord1 subrr mulmx0 /size1 mxE normr0 mul0r. Qed.
Lemma rest_range : (0 + 0 * 1 : R) < 1. Proof. by rewrite mul0r addr0 ltr01. Qed.
Definition matrix_certificate_instance (X : 'M[R]_(2, 1)) :=
  @matrix_certificate R 1 1 size1 size1_ge0 size1_scale size1_add 1 attends turns (fun _ _ => 1) 0 0 1 X
    (fun _ _ => (even_stochastic R)) (fun _ _ => (even_tau R)) (fun _ _ => ler01) size1_turns sum_one size1_rest (zero_ge0 R) (zero_ge0 R) rest_range.
End Instances.
