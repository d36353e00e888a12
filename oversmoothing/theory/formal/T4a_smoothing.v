(* T4a: where consensus dominates strictly, HFC/LFC -> 0, every cosine -> 1 and the effective rank
   -> 1, for every X_0 outside z^T X_0^T pi = 0; A and H may be complex or defective.  No axioms. *)
From mathcomp Require Import all_ssreflect all_algebra all_field.
From mathcomp.algebra_tactics Require Import ring.
Require Import TwoTokens T1_blocks T1a_spectrum Powers Dynamics Norms Singular.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* One state of small HFC. *)
Section OneState.
Variables (C : numClosedFieldType) (n d : nat) (X : 'M[C]_(1 + n, d)) (t : C).
Hypotheses (arch : archimedean C) (l0 : 0 < normF (LFC X)) (t1 : t <= 1).
Hypothesis small : norm1 (HFC X) <= t * normF (LFC X).
Local Notation l := (normF (LFC X)).

Lemma LFC_row i : row i (LFC X) = mean X.
Proof. by rewrite /LFC row_mul; apply/matrixP=> k j; rewrite !ord1 !mxE big_ord1 !mxE mul1r. Qed.
Lemma LFC_norm : norm2 (LFC X) = (1 + n)%:R * norm2 (mean X).
Proof.
rewrite /norm2 big_ord1 (eq_bigr (fun _ => \sum_j `|mean X 0 j| ^+ 2)) => [|i _].
  by rewrite sumr_const card_ord mulr_natl.
by apply: eq_bigr => j _; rewrite -(LFC_row i) [in RHS]mxE.
Qed.
Lemma mean_pos : 0 < normF (mean X).
Proof.
rewrite lt_def normF_ge0 andbT; apply: contraL l0 => /eqP E.
by rewrite /normF LFC_norm -normF_sqr E expr0n mulr0 sqrtC0 ltxx.
Qed.
Lemma LFC_le : l <= (1 + n)%:R * normF (mean X).
Proof.
rewrite -ler_sqr ?nnegrE ?mulr_ge0 ?normF_ge0 ?ler0n // exprMn !normF_sqr LFC_norm.
rewrite ler_wpmul2r ?norm2_ge0 // expr2 ler_pemull ?ler0n // ler1n.
by rewrite add1n.
Qed.
Lemma row_HFC i : row i X = mean X + row i (HFC X).
Proof. by rewrite {1}[X]HFC_LFC raddfD /= LFC_row addrC. Qed.
Lemma norm1_row m (Y : 'M[C]_(m, d)) i : norm1 (row i Y) <= norm1 Y.
Proof.
rewrite /norm1 big_ord1 [X in _ <= X](bigD1 i) //= (eq_bigr (fun j => `|Y i j|)) => [|j _].
  by rewrite ler_addl; apply: sumr_ge0 => k _; apply: sumr_ge0.
by rewrite mxE.
Qed.

(* Every token is close to the mean. *)
Lemma row_large i : t * (2%:R * (1 + n)%:R) <= 1 -> 2%:R^-1 * normF (mean X) <= normF (row i X).
Proof.
move=> tn; have := normF_tri (mean X) (row i X).
rewrite row_HFC opprD addrA subrr add0r norm1N -row_HFC.
rewrite -ler_subl_addr; apply: le_trans.
apply: (@le_trans _ _ (normF (mean X) - 2%:R^-1 * normF (mean X))).
  by rewrite le_eqVlt; apply/orP; left; apply/eqP; field; rewrite ?pnatr_eq0.
rewrite ler_add2l ler_opp2; apply: le_trans (norm1_row _ _) _; apply: le_trans small _.
have m0 := mean_pos; have t0 : 0 <= t.
  by rewrite -(pmulr_lge0 _ l0); apply: le_trans (norm1_ge0 _) small.
apply: le_trans (ler_wpmul2l t0 LFC_le) _; rewrite mulrA ler_pmul2r //.
by rewrite -[2%:R^-1]mulr1 ler_pdivl_mull ?ltr0n // mulrCA.
Qed.

Lemma cosine_small i k : t * (2%:R * (1 + n)%:R) <= 1 ->
  0 < normF (row i X) /\ `|1 - cosine (row i X) (row k X)| <= (8%:R * (1 + n)%:R) * t.
Proof.
move=> tn; have m0 := mean_pos.
have h0 : 0 < 2%:R^-1 * normF (mean X) by rewrite mulr_gt0 // invr_gt0 ltr0n.
have pos j : 0 < normF (row j X) := lt_le_trans h0 (row_large j tn).
split=> //; apply: le_trans (cosine_bound (pos i) (pos k)) _.
rewrite ler_pdivr_mulr //.
have t0 : 0 <= t.
  by rewrite -(pmulr_lge0 _ l0); apply: le_trans (norm1_ge0 _) small.
apply: (@le_trans _ _ (2%:R * (2%:R * (t * ((1 + n)%:R * normF (mean X)))))).
  rewrite ler_pmul2l ?ltr0n // !row_HFC opprD addrACA subrr add0r.
  apply: le_trans (norm1D _ _) _; rewrite norm1N.
  have b j : norm1 (row j (HFC X)) <= t * ((1 + n)%:R * normF (mean X)).
    apply: le_trans (norm1_row _ _) _; apply: le_trans small _.
    by rewrite ler_wpmul2l // LFC_le.
  by rewrite [X in _ <= X]mulrDl mul1r; apply: ler_add.
apply: (@le_trans _ _ (8%:R * (1 + n)%:R * t * (2%:R^-1 * normF (mean X)))).
  by rewrite le_eqVlt; apply/orP; left; apply/eqP; field; rewrite ?pnatr_eq0.
by rewrite ler_wpmul2l ?row_large // !mulr_ge0 ?ler0n.
Qed.

Lemma norm2_adjE m k (Y : 'M[C]_(m, k)) : norm2 (adj Y) = norm2 Y.
Proof.
rewrite /norm2 exchange_big; apply: eq_bigr => i _; apply: eq_bigr => j _.
by rewrite mxE norm_conjC.
Qed.
Lemma mean_direction : l ^+ 2 * norm2 (adj (mean X)) <= norm2 (X *m adj (mean X)).
Proof.
have n0 : 0 < (1 + n)%:R :> C by rewrite ltr0n.
have o : adj (e C (1 + n)) = (e C (1 + n))^T.
  by apply/matrixP=> i j; rewrite !mxE conjC1.
have E : (adj (e C (1 + n)) *m (X *m adj (mean X))) 0 0 = (1 + n)%:R * norm2 (mean X).
  have -> : adj (e C (1 + n)) *m (X *m adj (mean X)) = (1 + n)%:R *: (mean X *m adj (mean X)).
    by rewrite o mulmxA /mean -scalemxAl scalerA mulfV ?scale1r ?gt_eqF.
  by rewrite mxE -norm2_adjE -[in RHS]norm2_adj adjK.
have N1 : norm2 (e C (1 + n)) = (1 + n)%:R.
  rewrite /norm2 (eq_bigr (fun=> 1)) ?sumr_const ?card_ord // => i _.
  by rewrite big_ord1 mxE normr1 expr1n.
have := schwarz (e C (1 + n)) (X *m adj (mean X)).
rewrite E N1 ger0_norm ?mulr_ge0 ?norm2_ge0 ?(ltW n0) // expr2 -mulrA ler_pmul2l //.
by rewrite normF_sqr LFC_norm norm2_adjE mulrCA mulrA.
Qed.

(* All singular values but one are small. *)
Lemma shares s : singular_values X s -> exists i0, l <= s i0 /\
  forall i, i != i0 -> s i ^+ 2 <= 3%:R * t * l ^+ 2.
Proof.
move=> S; have m0 := mean_pos.
have [|||i0 Hi0] := @singular_top _ _ _ X s (adj (mean X)) (l ^+ 2) arch S.
- by rewrite exprn_gt0.
- by rewrite norm2_adjE -normF_sqr exprn_gt0.
- exact: mean_direction.
exists i0; have s0 := S.1; split; first by rewrite -ler_sqr ?nnegrE // ltW.
move=> i ne; have sum := singular_sum S.
have t0 : 0 <= t.
  by rewrite -(pmulr_lge0 _ l0); apply: le_trans (norm1_ge0 _) small.
apply: (@le_trans _ _ (norm2 X - l ^+ 2)).
  rewrite ler_subr_addr -sum (bigD1 i) //= (bigD1 i0) /=; last by rewrite eq_sym.
  rewrite ler_add2l -[X in X <= _]addr0 ler_add // sumr_ge0 // => k _; rewrite exprn_ge0 //.
rewrite -normF_sqr ler_subl_addr.
apply: (@le_trans _ _ ((l + t * l) ^+ 2)).
  rewrite ler_sqr ?nnegrE ?addr_ge0 ?normF_ge0 ?mulr_ge0 ?normF_ge0 //.
  apply: le_trans (normF_tri X (LFC X)) _; rewrite ler_add2l.
  by rewrite {1}[X]HFC_LFC addrK.
have -> : (l + t * l) ^+ 2 = (2%:R * t + t ^+ 2) * l ^+ 2 + l ^+ 2 by ring.
rewrite ler_add2r ler_wpmul2r ?exprn_ge0 ?normF_ge0 //.
have -> : 3%:R * t = 2%:R * t + t by ring.
by rewrite ler_add2l expr2 ler_pimull.
Qed.
End OneState.
Section EffectiveRank.
Variables (C : numClosedFieldType) (d : nat).
(* The effective rank e^(sum of eta(p_i)), p the singular values over their sum.  Of eta(p), which is
   - p log p, only eta -> 0 at 0 and at 1 is used, and of the exponential that it -> 1 at 0.       *)
Definition vanishes_at (eta : C -> C) (x : C) := forall eps, 0 < eps -> exists2 delta, 0 < delta &
  forall p, 0 <= p <= 1 -> `|p - x| <= delta -> `|eta p| <= eps.
Definition one_at_0 (E : C -> C) := forall eps, 0 < eps -> exists2 delta, 0 < delta &
  forall x, `|x| <= delta -> `|E x - 1| <= eps.
Definition effective_rank (eta E : C -> C) (s : 'I_d -> C) := E (\sum_i eta (s i / \sum_k s k)).

(* All singular values but one are small beside it. *)
Lemma effective_rank_near (eta E : C -> C) : vanishes_at eta 0 -> vanishes_at eta 1 -> one_at_0 E ->
  forall eps, 0 < eps -> exists2 w : C, 0 < w <= 1 & forall (s : 'I_d -> C) i0, (forall i, 0 <= s i) ->
  0 < s i0 -> (forall i, i != i0 -> s i <= w * s i0) -> `|effective_rank eta E s - 1| <= eps.
Proof.
move=> eta0 eta1 E0 eps /E0[dE dE0 HE]; pose d1 : C := d.+1%:R; have d10 : 0 < d1 by rewrite ltr0n.
have e0 : 0 < dE / d1 by rewrite divr_gt0.
have [de0 de00 He0] := eta0 _ e0; have [de1 de10 He1] := eta1 _ e0.
have [w w0 Hw] : exists2 w : C, 0 < w & forall b, w <= if b is Some b' then
    if b' then de0 else de1 / d1 else 1.
  by apply: lower_bound => -[[]|]; rewrite ?ltr01 ?divr_gt0.
exists w; first by rewrite w0; exact: (Hw None).
move=> s i0 s0 top rest; apply: HE.
set Sg := \sum_k s k; have Stop : s i0 <= Sg.
  by rewrite /Sg (bigD1 i0) //= ler_addl sumr_ge0.
have Sp : 0 < Sg by apply: lt_le_trans Stop.
have small i : i != i0 -> s i / Sg <= w.
  move=> /rest Hi; rewrite ler_pdivr_mulr //; apply: le_trans Hi _.
  by rewrite ler_pmul2l.
have in01 i : 0 <= s i / Sg <= 1.
  rewrite divr_ge0 ?(ltW Sp) //= ler_pdivr_mulr // mul1r /Sg (bigD1 i) //= ler_addl.
  exact: sumr_ge0.
have each i : `|eta (s i / Sg)| <= dE / d1.
  have [->|ne] := eqVneq i i0; last first.
    apply: He0 => //; rewrite subr0 ger0_norm ?divr_ge0 ?(ltW Sp) //.
    by apply: le_trans (small _ ne) _; exact: (Hw (Some true)).
  apply: He1 => //; have /andP[_ le1] := in01 i0.
  rewrite distrC ger0_norm ?subr_ge0 //.
  have -> : 1 - s i0 / Sg = \sum_(i | i != i0) s i / Sg.
    rewrite -{1}(divff (negbT (gt_eqF Sp))) -mulrBl -mulr_suml /Sg.
    by rewrite [Y in Y - _](bigD1 i0) //= addrC addKr.
  apply: (@le_trans _ _ (\sum_(i < d) de1 / d1)).
    apply: (@le_trans _ _ (\sum_(i | i != i0) de1 / d1)).
      by apply: ler_sum => k ne; apply: le_trans (small _ ne) _; exact: (Hw (Some false)).
    rewrite [Y in _ <= Y](bigD1 i0) //= ler_addr divr_ge0 ?ltW //.
  rewrite sumr_const card_ord -mulr_natr -mulrA ler_pimulr ?(ltW de10) //.
  by rewrite mulrC ler_pdivr_mulr // mul1r ler_nat.
apply: le_trans (ler_norm_sum _ _ _) _; apply: le_trans (ler_sum _ (fun i _ => each i)) _.
rewrite sumr_const card_ord -mulr_natr -mulrA ler_pimulr ?(ltW dE0) //.
by rewrite mulrC ler_pdivr_mulr // mul1r ler_nat.
Qed.
End EffectiveRank.

Section Main.
Variables (C : numClosedFieldType) (n d : nat) (A : 'M[C]_(1 + n)) (H : 'M[C]_d).
Variables (pi : 'rV[C]_(1 + n)) (z : 'rV[C]_d) (h : C) (X0 : 'M[C]_(1 + n, d)).
Hypothesis arch : archimedean C.
Hypothesis A1 : A *m e C (1 + n) = e C (1 + n).
(* At least two tokens; one token does as well unless h = -1 deletes it. *)
Hypothesis two_tokens : (0 < n)%N || (h != -1).
Hypotheses (piA : pi *m A = pi) (pi1 : pi *m e C (1 + n) = 1%:M) (zH : z *m H = h *: z).
(* Consensus dominates with h: |1 + h| exceeds the modulus of every multiplier of the quotient. *)
Hypothesis smoothing : forall h' a, root (char_poly H) h' -> root (char_poly (Bp A)) a ->
  `|1 + h' * a| < `|1 + h|.
Hypothesis generic : z *m X0^T *m pi^T != 0.
Local Notation X L := (evolve A H^T L X0).

Lemma small_HFC t : 0 < t -> exists N, forall L, (N <= L)%N ->
  0 < normF (LFC (X L)) /\ norm1 (HFC (X L)) <= t * normF (LFC (X L)).
Proof.
move=> t0; pose r := `|1 + h|.
have d0 : (0 < d)%N.
  rewrite lt0n; apply: contraNneq generic => E; apply/eqP.
  move: z X0; rewrite E => z' X'; rewrite (thinmx0 z') !mul0mx //.
have r0 : 0 < r.
  have [n0|hn] := orP two_tokens; last by rewrite normr_gt0 addrC addr_eq0.
  have /closed_rootP[a ra] : size (char_poly (Bp A)) != 1%N.
    by rewrite size_char_poly eqSS -lt0n.
  have /closed_rootP[b rb] : size (char_poly H) != 1%N.
    by rewrite size_char_poly eqSS -lt0n.
  exact: le_lt_trans (smoothing rb ra).
have [|q /andP[q0 qr] [K K0 HK]] := @growth_below _ _ _ (Bp A) H^T r r0.
  by rewrite trmxK.
pose K1 := norm1 (@P C n) * (K * norm1 (diff X0)).
have K10 : 0 <= K1 by rewrite !mulr_ge0 ?norm1_ge0.
have up L : norm1 (HFC (X L)) <= K1 * q ^+ L.
  apply: le_trans (norm1_HFC _) _; rewrite /K1 -!mulrA ler_wpmul2l ?norm1_ge0 //.
  by rewrite (diff_evolve _ A1); apply: le_trans (HK _ _) _; rewrite -mulrA (mulrC (q ^+ L)).
pose g := `|(pi *m X0 *m z^T) 0 0|.
have g0 : 0 < g.
  rewrite normr_gt0; apply: contraNneq generic => E.
  apply/eqP; apply: trmx_inj; rewrite !trmx_mul !trmxK trmx0 mulmxA.
  by apply/matrixP=> i j; rewrite !ord1 E mxE.
pose K2 := norm1 z^T; pose K3 := norm1 ((1 + n)%:R^-1 *: (e C (1 + n))^T - pi).
pose Dd : C := (1 * d)%:R.
have K30 : 0 <= K3 by exact: norm1_ge0.
have Dd0 : 0 < Dd by rewrite ltr0n mul1n.
have low L : g * r ^+ L <= K2 * (Dd * normF (LFC (X L)) + K3 * norm1 (HFC (X L))).
  have -> : g * r ^+ L = `|(pi *m X L *m z^T) 0 0|.
    rewrite (@along _ _ _ A H^T pi z^T 1 h) ?scale1r //; last first.
      by rewrite -trmx_mul zH linearZ.
    by rewrite mxE normrM normrX mulr1 mulrC.
  apply: le_trans (norm1_entry _ _ _) _; apply: le_trans (norm1_mul _ _) _.
  rewrite mulrC ler_wpmul2l ?norm1_ge0 //.
  have -> : pi *m X L = mean (X L) - ((1 + n)%:R^-1 *: (e C (1 + n))^T - pi) *m HFC (X L).
    by rewrite {1}(coupling (X L) pi1) addrK.
  apply: le_trans (norm1D _ _) _; rewrite norm1N; apply: ler_add; last exact: norm1_mul.
  apply: le_trans (norm1_leF _) _; rewrite ler_pmul2l //.
  rewrite -ler_sqr ?nnegrE ?normF_ge0 // !normF_sqr LFC_norm ler_pemull ?norm2_ge0 //.
  by rewrite ler1n.
have K20 : 0 < K2.
  rewrite lt_def norm1_ge0 andbT; apply/eqP => E; have := low 0%N.
  by rewrite expr0 mulr1 E mul0r => /(lt_le_trans g0); rewrite ltxx.
pose M := K2 * (Dd + t * K3); have M0 : 0 < M.
  by rewrite mulr_gt0 // ltr_paddr // mulr_ge0 // ltW.
have D0 : 0 < 2%:R * (K1 * M) + 1 by rewrite ltr_paddl ?ltr01 // (mulr_ge0 (ler0n _ _) (mulr_ge0 K10 (ltW M0))).
have e0 : 0 < t * g / (2%:R * (K1 * M) + 1) by rewrite divr_gt0 ?mulr_gt0.
have [N HN] := smaller_power arch q0 qr e0; exists N => L NL.
set l := normF _; set Hn := norm1 _; have l0 : 0 <= l by exact: normF_ge0.
have Hn0 : 0 <= Hn by exact: norm1_ge0.
pose u := g * r ^+ L; have u0 : 0 < u by rewrite mulr_gt0 // exprn_gt0.
have lo : u <= K2 * (Dd * l + K3 * Hn) := low L.
have key : 2%:R * (Hn * M) <= t * u.
  apply: (@le_trans _ _ (2%:R * (K1 * (t * g / (2%:R * (K1 * M) + 1) * r ^+ L) * M))).
    rewrite ler_pmul2l ?ltr0n // ler_pmul2r //; apply: le_trans (up L) _.
    by rewrite ler_wpmul2l // HN.
  have -> : 2%:R * (K1 * (t * g / (2%:R * (K1 * M) + 1) * r ^+ L) * M) =
    t * u * (2%:R * (K1 * M) / (2%:R * (K1 * M) + 1)) by rewrite /u; field; rewrite gt_eqF.
  apply: (ler_pimulr (ltW (mulr_gt0 t0 u0))); rewrite ler_pdivr_mulr // mul1r ler_addl.
  exact: ler01.
have HM0 : 0 <= Hn * M := mulr_ge0 Hn0 (ltW M0).
have lp : 0 < l.
  rewrite lt_def l0 andbT; apply/eqP => E.
  have b : t * u <= Hn * M.
    apply: le_trans (ler_wpmul2l (ltW t0) lo) _; rewrite E mulr0 add0r -subr_ge0.
    have -> : Hn * M - t * (K2 * (K3 * Hn)) = Hn * K2 * Dd by rewrite /M; ring.
    by rewrite !mulr_ge0 // ltW.
  have : t * u + t * u <= t * u.
    apply: le_trans (ler_add b b) _; apply: le_trans _ key.
    by rewrite mulrDl mul1r.
  by rewrite ger_addl (lt_geF (mulr_gt0 t0 u0)).
split=> //; rewrite -(ler_pmul2l (mulr_gt0 K20 Dd0)) -subr_ge0.
have -> : K2 * Dd * (t * l) - K2 * Dd * Hn =
  t * (K2 * (Dd * l + K3 * Hn) - u) + (t * u - 2%:R * (Hn * M)) + Hn * M by rewrite /M; ring.
apply: addr_ge0 HM0; apply: addr_ge0; last by rewrite subr_ge0.
by apply: mulr_ge0; rewrite ?subr_ge0 // ltW.
Qed.

(* HFC/LFC -> 0 *)
Theorem T4a_ratio eps : 0 < eps -> exists N, forall L, (N <= L)%N ->
  0 < normF (LFC (X L)) /\ normF (HFC (X L)) <= eps * normF (LFC (X L)).
Proof.
move=> e0; have [N HN] := small_HFC e0; exists N => L /HN[l0 Hs]; split=> //.
exact: le_trans (normF_le1 _) Hs.
Qed.

(* Every pairwise cosine -> 1, and no token is 0. *)
Theorem T4a_cosines eps : 0 < eps -> exists N, forall L, (N <= L)%N -> forall i k,
  0 < normF (row i (X L)) /\ `|1 - cosine (row i (X L)) (row k (X L))| <= eps.
Proof.
move=> e0; pose n1 : C := (1 + n)%:R; have n10 : 0 < n1 by rewrite ltr0n.
have [t t0 Ht] : exists2 t : C, 0 < t & forall b, t <= if b is Some b' then
    if b' then (2%:R * n1)^-1 else eps / (8%:R * n1) else 1.
  by apply: lower_bound => -[[]|]; rewrite ?ltr01 ?invr_gt0 ?divr_gt0 ?mulr_gt0 ?ltr0n.
have [N HN] := small_HFC t0; exists N => L /HN[l0 Hs] i k.
have [|p c] := cosine_small l0 Hs i k.
  by rewrite -ler_pdivl_mulr ?mulr_gt0 ?ltr0n // mul1r; exact: (Ht (Some true)).
split=> //; apply: le_trans c _; rewrite mulrC -ler_pdivl_mulr ?mulr_gt0 ?ltr0n //.
exact: (Ht (Some false)).
Qed.

Theorem T4a_effective_rank (eta E : C -> C) : vanishes_at eta 0 -> vanishes_at eta 1 -> one_at_0 E ->
  forall eps, 0 < eps -> exists N, forall L, (N <= L)%N -> forall s, singular_values (X L) s ->
  `|effective_rank eta E s - 1| <= eps.
Proof.
move=> eta0 eta1 E0 eps /(@effective_rank_near C d _ _ eta0 eta1 E0)[w /andP[w0 w1] near].
have t0 : 0 < w ^+ 2 / 3%:R by rewrite divr_gt0 ?exprn_gt0 ?ltr0n.
have t1 : w ^+ 2 / 3%:R <= 1.
  rewrite ler_pdivr_mulr ?ltr0n // mul1r; apply: (@le_trans _ _ 1); last by rewrite ler1n.
  by rewrite exprn_ile1 ?(ltW w0).
have [N HN] := small_HFC t0; exists N => L /HN[l0 Hs] s S.
have [i0 [top rest]] := shares arch l0 t1 Hs S; have s0 := S.1.
apply: (near s i0) => // [|i /rest Hi]; first exact: lt_le_trans top.
apply: (@le_trans _ _ (w * normF (LFC (X L)))); last by rewrite ler_pmul2l.
rewrite -ler_sqr ?nnegrE ?mulr_ge0 ?(ltW w0) ?(ltW l0) //.
by apply: le_trans Hi _; rewrite exprMn (mulrC 3%:R) divfK ?pnatr_eq0.
Qed.
End Main.

(* What X_0 has to avoid is a proper subspace. *)
Theorem T4a_proper (C : numClosedFieldType) n d (pi : 'rV[C]_n) (z : 'rV[C]_d) :
  pi != 0 -> z != 0 -> exists X0 : 'M[C]_(n, d), z *m X0^T *m pi^T != 0.
Proof.
move=> /rV0Pn[i pii] /rV0Pn[j zj]; exists (delta_mx i j).
apply/eqP => /matrixP/(_ 0 0)/eqP; rewrite trmx_delta.
have -> : z *m delta_mx j i = z 0 j *: delta_mx 0 i.
  apply/matrixP=> a b; rewrite !mxE (bigD1 j) //= big1 ?addr0 => [|k ne].
    by rewrite !mxE !ord1 eqxx.
  by rewrite mxE (negbTE ne) mulr0.
rewrite -scalemxAl !mxE (bigD1 i) //= big1 ?addr0 => [|k ne].
  by rewrite !mxE eqxx mul1r mulf_eq0 (negbTE zj) (negbTE pii).
by rewrite !mxE (negbTE ne) mul0r.
Qed.

(* The hypotheses hold for uniform attention and H = 1. *)
Section Instances.
Local Notation C := algCnumClosedField.
Let zH (h : C) : (1%:M : 'rV[C]_1) *m h%:M = h *: 1%:M.
Proof. by rewrite mul1mx scalemx1. Qed.
Let rootB a : root (char_poly (Bp uniform)) a -> a = 0.
Proof. by rewrite Bp_uniform root_mx11 mxE => /eqP. Qed.
Let smoothing h' a : root (char_poly (1%:M : 'M[C]_1)) h' -> root (char_poly (Bp uniform)) a ->
  `|1 + h' * a| < `|1 + 1 : C|.
Proof.
move=> _ /rootB ->; by rewrite mulr0 addr0 normr1 -[1 + 1]/(2%:R) normr_nat ltr1n.
Qed.
Let generic : (1%:M : 'rV[C]_1) *m first_token^T *m halves^T != 0.
Proof.
apply/eqP => /matrixP/(_ 0 0)/eqP; rewrite mul1mx !mxE sum2 !mxE /= mul1r mul0r addr0.
by rewrite invr_eq0 (negbTE two_neq0).
Qed.
Definition T4a_ratio_instance :=
  @T4a_ratio C 1 1 uniform 1%:M halves 1%:M 1 first_token algC_archimedean uniform1 isT uniform_pi halves1 (zH 1) smoothing generic.
Definition T4a_cosines_instance :=
  @T4a_cosines C 1 1 uniform 1%:M halves 1%:M 1 first_token algC_archimedean uniform1 isT uniform_pi halves1 (zH 1) smoothing generic.
Definition T4a_effective_rank_instance :=
  @T4a_effective_rank C 1 1 uniform 1%:M halves 1%:M 1 first_token algC_archimedean uniform1 isT uniform_pi halves1 (zH 1) smoothing generic.
End Instances.
