(* Singular values of complex matrices: they exist, their squares sum to the squared norm, and the
   largest is at least any |X y|/|y|.  No axioms.                                               *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
Require Import T1_blocks T1a_spectrum Powers Norms.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Singular.
Variable C : numClosedFieldType.

Lemma cauchy_schwarz (I : finType) (a b : I -> C) : (forall i, 0 <= a i) -> (forall i, 0 <= b i) ->
  (\sum_i a i * b i) ^+ 2 <= (\sum_i a i ^+ 2) * (\sum_i b i ^+ 2).
Proof.
move=> a0 b0; set T := \sum_i a i * b i; set Q := \sum_i _; set S := \sum_i b i ^+ 2.
have H : 0 <= \sum_i \sum_j (a i * b j - a j * b i) ^+ 2.
  apply: sumr_ge0 => i _; apply: sumr_ge0 => j _.
  by rewrite real_exprn_even_ge0 // rpredB // ger0_real ?mulr_ge0.
have E : \sum_i \sum_j (a i * b j - a j * b i) ^+ 2 = 2%:R * (Q * S - T ^+ 2).
  transitivity (\sum_i (a i ^+ 2 * S + (- 2%:R) * (a i * b i) * T + b i ^+ 2 * Q)).
    apply: eq_bigr => i _; rewrite /S /T /Q !mulr_sumr -!big_split; apply: eq_bigr => j _ /=.
    by ring.
  rewrite !big_split /= -!mulr_suml -mulr_sumr -/Q -/S -/T; ring.
by move: H; rewrite E pmulr_rge0 ?ltr0n // subr_ge0.
Qed.

Definition adj n d (X : 'M[C]_(n, d)) : 'M[C]_(d, n) := \matrix_(i, j) (X j i)^*.
Lemma adj_mul m n d (X : 'M[C]_(m, n)) (Y : 'M[C]_(n, d)) : adj (X *m Y) = adj Y *m adj X.
Proof.
apply/matrixP=> i j; rewrite !mxE rmorph_sum; apply: eq_bigr => k _.
by rewrite !mxE rmorphM mulrC.
Qed.
Lemma adjK m n (X : 'M[C]_(m, n)) : adj (adj X) = X.
Proof. by apply/matrixP=> i j; rewrite !mxE conjCK. Qed.
Lemma norm2_adj m (y : 'cV[C]_m) : (adj y *m y) 0 0 = norm2 y.
Proof.
by rewrite mxE; apply: eq_bigr => k _; rewrite big_ord1 !mxE mulrC normCK.
Qed.
Lemma norm1_adj m n (X : 'M[C]_(m, n)) : norm1 (adj X) = norm1 X.
Proof.
rewrite /norm1 exchange_big; apply: eq_bigr => i _; apply: eq_bigr => j _.
by rewrite mxE norm_conjC.
Qed.
Lemma schwarz m (x y : 'cV[C]_m) : `|(adj x *m y) 0 0| ^+ 2 <= norm2 x * norm2 y.
Proof.
have N (z : 'cV[C]_m) : norm2 z = \sum_i `|z i 0| ^+ 2.
  by apply: eq_bigr => i _; rewrite big_ord1.
rewrite !N; apply: le_trans (cauchy_schwarz _ _); rewrite // ler_sqr ?nnegrE ?sumr_ge0 //.
  rewrite mxE; apply: le_trans (ler_norm_sum _ _ _) _; apply: ler_sum => i _.
  by rewrite normrM mxE norm_conjC.
by move=> i _; rewrite mulr_ge0.
Qed.

Lemma half_share (k x : C) : 0 <= k -> 0 < x -> k * (x / (k + x) / 2%:R) < x.
Proof.
move=> k0 x0; have D0 : 0 < k + x by rewrite ltr_paddl.
rewrite !mulrA [k * _]mulrC -!mulrA gtr_pmulr // mulrA ltr_pdivr_mulr ?ltr0n // mul1r.
apply: (@le_lt_trans _ _ 1); last by rewrite ltr1n.
by rewrite ler_pdivr_mulr // mul1r ler_addl ltW.
Qed.

(* A Rayleigh quotient is at most what bounds the eigenvalues. *)
Lemma rayleigh d (G : 'M[C]_d) (y : 'cV[C]_d) (q : C) : archimedean C -> adj G = G ->
  0 <= (adj y *m G *m y) 0 0 -> 0 <= q -> (forall a, root (char_poly G) a -> `|a| < q) ->
  (adj y *m G *m y) 0 0 <= q * norm2 y.
Proof.
move=> arch GG; set m1 := (_ *m y) 0 0 => m10 q0 below.
have [Z|y0] := eqVneq (norm2 y) 0.
  have yz : y = 0.
    apply/matrixP=> i j; rewrite mxE; apply/eqP; rewrite -normr_eq0; apply/eqP/le_anti.
    by rewrite normr_ge0 andbT; have := normF_entry y i j; rewrite /normF Z sqrtC0.
  by rewrite Z mulr0 /m1 yz mulmx0 mxE.
have yp : 0 < norm2 y by rewrite lt_def y0 norm2_ge0.
pose r := m1 / norm2 y; have r0 : 0 <= r by rewrite divr_ge0 // norm2_ge0.
rewrite -ler_pdivr_mulr // -/r.
have := real_leP (ger0_real r0) (ger0_real q0); case=> // qr.
pose v k := iter k (mulmx G) y.
have shift j k : adj (v j) *m v k = adj y *m v (j + k)%N.
  elim: j k => [|j IH] k //; rewrite {1}/v iterS -/(v j) adj_mul GG -mulmxA.
  by have -> : G *m v k = v k.+1 by []; rewrite IH addnS.
pose m k := (adj y *m v k) 0 0.
have low j : norm2 y * r ^+ (2 ^ j) <= `|m (2 ^ j)%N|.
  elim: j => [|j IH].
    have -> : m (2 ^ 0)%N = m1 by rewrite /m /v /= /m1 mulmxA.
    by rewrite expr1 ger0_norm // /r mulrC divfK.
  have e : m (2 ^ j.+1)%N = norm2 (v (2 ^ j)%N).
    by rewrite -norm2_adj shift addnn -mul2n -expnS.
  rewrite e ger0_norm ?norm2_ge0 //; have := schwarz y (v (2 ^ j)%N); rewrite -/(m _) => S.
  rewrite -(ler_pmul2l yp); apply: le_trans S.
  have -> : norm2 y * (norm2 y * r ^+ (2 ^ j.+1)) = (norm2 y * r ^+ (2 ^ j)) ^+ 2.
    by rewrite expnS mulnC exprM; move: (r ^+ (2 ^ j)) => p; ring.
  by rewrite ler_sqr ?nnegrE ?normr_ge0 ?mulr_ge0 ?exprn_ge0 ?norm2_ge0.
have [K K0 HK] := power_bound q0 below.
pose K2 := norm1 y * (K * norm1 y); have K20 : 0 <= K2 by rewrite !mulr_ge0 ?norm1_ge0.
have up k : `|m k| <= K2 * q ^+ k.
  apply: le_trans (norm1_entry _ _ _) _; apply: le_trans (norm1_mul _ _) _; rewrite norm1_adj.
  rewrite /K2 -mulrA ler_wpmul2l ?norm1_ge0 //; apply: le_trans (HK _ _ _) _.
  by rewrite le_eqVlt; apply/orP; left; apply/eqP; ring.
have D0 : 0 < K2 + norm2 y by rewrite ltr_paddl.
have e0 : 0 < norm2 y / (K2 + norm2 y) / 2%:R by rewrite !divr_gt0 ?ltr0n.
have [N HN] := smaller_power arch q0 qr e0.
have rp : 0 < r by exact: le_lt_trans qr.
have NL : (N <= 2 ^ N)%N by rewrite ltnW // ltn_expl.
have := le_trans (low N) (le_trans (up _) (ler_wpmul2l K20 (HN _ NL))).
by rewrite mulrA ler_pmul2r ?exprn_gt0 // (lt_geF (half_share K20 yp)).
Qed.

(* The singular values of X: their squares are the eigenvalues of X^* X, with multiplicity. *)
Definition singular_values n d (X : 'M[C]_(n, d)) (s : 'I_d -> C) :=
  (forall i, 0 <= s i) /\ char_poly (adj X *m X) = \prod_i ('X - (s i ^+ 2)%:P).

Theorem singular_values_exist n d (X : 'M[C]_(n, d)) : exists s, singular_values X s.
Proof.
pose G := adj X *m X; have [P0 [Q [PQ tr]]] := trigonal G; set T := P0 *m G *m Q in tr.
exists (fun i => sqrtC `|T i i|); split; first by move=> i; rewrite sqrtC_ge0.
rewrite -/G -(char_poly_sim G PQ) char_poly_trig //; apply: eq_bigr => i _; rewrite sqrtCK.
congr ('X - _%:P); rewrite ger0_norm //.
have : root (char_poly G) (T i i) by rewrite -(char_poly_sim G PQ) root_trig.
rewrite -eigenvalue_root_char => /eigenvalueP[v vG v0].
have E : norm2 (X *m adj v) = T i i * norm2 (adj v).
  by rewrite -!norm2_adj adj_mul adjK -mulmxA (mulmxA (adj X)) -/G mulmxA vG -scalemxAl mxE.
have p : 0 < norm2 (adj v).
  have /rV0Pn[j vj] := v0; rewrite /norm2 (bigD1 j) //= big_ord1 mxE ltr_paddr //.
    by apply: sumr_ge0 => k _; apply: sumr_ge0 => l _; rewrite exprn_ge0.
  by rewrite exprn_gt0 // normr_gt0 conjC_eq0.
by rewrite -(pmulr_lge0 _ p) -E norm2_ge0.
Qed.

(* Their squares sum to the squared Frobenius norm. *)
Lemma singular_sum n d (X : 'M[C]_(n, d)) s : singular_values X s ->
  \sum_i s i ^+ 2 = norm2 X.
Proof.
case: d X s => [|d] X s [s0 E]; first by rewrite big_ord0 /norm2 big1 // => i _; rewrite big_ord0.
have T : \tr (adj X *m X) = \tr (diag_mx (\row_i (s i ^+ 2))).
  apply: oppr_inj; rewrite -!char_poly_trace // E char_poly_trig ?diag_mx_is_trig //.
  by congr (_`__); congr polyseq; apply: eq_bigr => i _; rewrite !mxE eqxx mulr1n.
transitivity (\tr (diag_mx (\row_i (s i ^+ 2)))).
  by rewrite mxtrace_diag; apply: eq_bigr => i _; rewrite mxE.
rewrite -T /mxtrace /norm2 exchange_big /=; apply: eq_bigr => j _.
by rewrite mxE; apply: eq_bigr => i _; rewrite mxE mulrC normCK.
Qed.

(* The largest is at least any |X y|/|y|. *)
Lemma singular_top n d (X : 'M[C]_(n, d)) s (y : 'cV[C]_d) (r : C) :
  archimedean C -> singular_values X s -> 0 < r -> 0 < norm2 y ->
  r * norm2 y <= norm2 (X *m y) -> exists i, r <= s i ^+ 2.
Proof.
move=> arch [s0 E] r0 y0 big.
case: (boolP [exists i, r <= s i ^+ 2]) => [/existsP//|/existsPn none].
have rr i : s i ^+ 2 < r.
  by have := none i; rewrite -real_ltNge // ger0_real ?exprn_ge0 // ltW.
have [|q /andP[q0 qr] below] := @gap _ _ (adj X *m X) r r0.
  move=> a; rewrite E /root horner_prod => /prodf_eq0[i _].
  rewrite hornerD hornerN hornerX hornerC subr_eq0 => /eqP->.
  by rewrite ger0_norm ?exprn_ge0.
have e : (adj y *m (adj X *m X) *m y) 0 0 = norm2 (X *m y).
  by rewrite -norm2_adj adj_mul !mulmxA.
have := @rayleigh d (adj X *m X) y q arch; rewrite adj_mul adjK e norm2_ge0.
move=> /(_ erefl isT q0 below) /(le_trans big); rewrite ler_pmul2r // => /le_lt_trans/(_ qr).
by rewrite ltxx.
Qed.
End Singular.
