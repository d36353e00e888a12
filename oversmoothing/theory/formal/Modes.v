(* One simple dominant pair (a, h): the state divided by (1 + h a)^L tends to a matrix v u^T of rank
   1, for any A and H, complex or with defective other eigenvalues.  No axioms.                  *)
From mathcomp Require Import all_ssreflect all_algebra all_field.
From mathcomp.algebra_tactics Require Import ring.
Require Import TwoTokens T1_blocks T1a_spectrum Powers Dynamics Norms.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Split.
Variable C : numClosedFieldType.
Implicit Types a : C.

(* A simple root of the characteristic polynomial. *)
Definition simple n (A : 'M[C]_n) a := root (char_poly A) a /\ ~~ root (char_poly A)^`() a.
Definition unit0 n : 'cV[C]_(1 + n) := col_mx 1%:M 0.

Lemma shift_unit n (B : 'M[C]_n) a : ~~ root (char_poly B) a -> B - a%:M \in unitmx.
Proof. by rewrite -eigenvalue_root_char /eigenvalue /eigenspace negbK kermx_eq0 row_free_unit. Qed.

Lemma char_poly_ublock n a (r : 'M[C]_(1, n)) (B : 'M[C]_n) :
  char_poly (block_mx a%:M r 0 B : 'M_(1 + n)) = ('X - a%:P) * char_poly B.
Proof.
rewrite /char_poly /char_poly_mx map_block_mx scalar_mx_block opp_block_mx add_block_mx map_mx0.
by rewrite oppr0 addr0 add0r det_ublock map_scalar_mx /= -raddfB det_scalar1.
Qed.

(* A simple eigenvalue splits off. *)
Lemma split_off n (A : 'M[C]_(1 + n)) a (v : 'cV[C]_(1 + n)) : simple A a -> A *m v = a *: v ->
  v != 0 -> exists (P Q : 'M[C]_(1 + n)) (B : 'M[C]_n),
  [/\ P *m Q = 1%:M, P *m A *m Q = block_mx a%:M 0 0 B, ~~ root (char_poly B) a,
      char_poly A = ('X - a%:P) * char_poly B & Q *m unit0 n = v].
Proof.
move=> [ra da] vA v0; pose U := row_ebase v^T; have Uu : U \in unitmx by exact: row_ebase_unit.
have vt0 : v^T != 0 by rewrite -(inj_eq (@trmx_inj _ _ _)) trmxK trmx0.
pose e : 'rV[C]_(1 + n) := row_mx 1%:M 0.
have [k [k0 ek]] : exists k, k != 0 /\ v^T = k *: (e *m U).
  have := mulmx_ebase v^T; rewrite -/U rank_rV vt0 [col_ebase v^T]mx11_scalar mul_scalar_mx.
  have -> : pid_mx 1 = e.
    apply/matrixP=> i j; rewrite !mxE ord1 /=; case: splitP => l El; rewrite !mxE ?ord1 //.
    - by rewrite El ord1.
    - by rewrite El.
  rewrite -scalemxAl => Ev; exists (col_ebase v^T 0 0); split=> //.
  by apply: contraNneq vt0 => k0; rewrite -Ev k0 scale0r.
pose Q0 := k *: U^T; have Q0u : Q0 \in unitmx.
  by rewrite unitmxZ ?unitfE // unitmx_tr.
have et : e^T = unit0 n by rewrite tr_row_mx trmx1 trmx0.
have Q0e : Q0 *m unit0 n = v by rewrite -[v]trmxK ek linearZ /= trmx_mul et -scalemxAl.
pose M := invmx Q0 *m A *m Q0.
have Me : M *m unit0 n = a *: unit0 n.
  by rewrite -mulmxA Q0e -mulmxA vA -scalemxAr -Q0e mulKmx.
have EM : M = block_mx a%:M (ursubmx M) 0 (drsubmx M).
  move: Me; rewrite -{1}[M]submxK /unit0 mul_block_col !mulmx1 !mulmx0 !addr0 scale_col_mx scaler0.
  by rewrite scalemx1 => /eq_col_mx[<- <-]; rewrite submxK.
pose B := drsubmx M; pose r := ursubmx M.
have cA : char_poly A = ('X - a%:P) * char_poly B.
  by rewrite -(char_poly_ublock a r B) -EM; apply/esym/char_poly_sim; exact: mulVmx.
have rB : ~~ root (char_poly B) a.
  move: da; rewrite cA derivM derivXsubC mul1r rootE hornerD hornerM hornerXsubC subrr mul0r.
  by rewrite addr0.
pose y := - (r *m invmx (B - a%:M)); have yB : y *m B - a *: y = - r.
  have -> : y *m B - a *: y = y *m (B - a%:M) by rewrite mulmxBr mul_mx_scalar.
  by rewrite mulNmx mulmxKV // shift_unit.
pose T : 'M[C]_(1 + n) := block_mx 1%:M y 0 1%:M.
pose T' : 'M[C]_(1 + n) := block_mx 1%:M (- y) 0 1%:M.
have TT : T *m T' = 1%:M.
  by rewrite mulmx_block !mulmx0 !mul0mx !mul1mx !mulmx1 !addr0 !add0r addNr -scalar_mx_block.
exists (T *m invmx Q0), (Q0 *m T'), B; split=> //.
- by rewrite mulmxA -[T *m _ *m Q0]mulmxA mulVmx // mulmx1.
- have -> : T *m invmx Q0 *m A *m (Q0 *m T') = T *m M *m T' by rewrite !mulmxA.
  rewrite EM !mulmx_block !mulmx0 !mul0mx !mul1mx !mulmx1 !addr0 !add0r.
  congr block_mx; last by rewrite mul0mx add0r.
  by rewrite -/r -/B mul_scalar_mx scalerN addrC -addrA yB subrr.
- by rewrite -mulmxA /T' /unit0 mul_block_col !mulmx1 !mulmx0 !addr0.
Qed.

Lemma norm1_block m n p q (A : 'M[C]_(m, p)) (B : 'M[C]_(m, q)) (D : 'M[C]_(n, p)) (E : 'M[C]_(n, q)) :
  norm1 (block_mx A B D E) = norm1 A + norm1 B + (norm1 D + norm1 E).
Proof.
rewrite /norm1 big_split_ord /=; congr (_ + _); rewrite -big_split; apply: eq_bigr => i _ /=;
  rewrite big_split_ord; congr (_ + _); apply: eq_bigr => j _.
- by rewrite block_mxEul. - by rewrite block_mxEur. - by rewrite block_mxEdl. - by rewrite block_mxEdr.
Qed.

Lemma evolve_sim n d (P Q A : 'M[C]_n) (S T H : 'M[C]_d) L X : P *m Q = 1%:M -> S *m T = 1%:M ->
  P *m evolve A H^T L X *m S^T = evolve (P *m A *m Q) (S *m H *m T)^T L (P *m X *m S^T).
Proof.
move=> PQ ST; have QP := mulmx1C PQ; have TS := mulmx1C ST.
elim: L => // L IH; rewrite [RHS]/evolve iterS -/(evolve _ _ _ _) -IH.
have -> : evolve A H^T L.+1 X = evolve A H^T L X + A *m evolve A H^T L X *m H^T by [].
rewrite mulmxDr mulmxDl; congr (_ + _); set Y := evolve _ _ _ _.
have -> : (S *m H *m T)^T = T^T *m (H^T *m S^T) by rewrite !trmx_mul.
have E : S^T *m T^T = 1%:M by rewrite -trmx_mul TS trmx1.
by rewrite !mulmxA -[P *m A *m Q *m P]mulmxA QP mulmx1 -[_ *m S^T *m T^T]mulmxA E mulmx1.
Qed.

Lemma evolve_block n d (a h : C) (B : 'M[C]_n) (G : 'M[C]_d) L (x : 'M[C]_1) (r : 'M_(1, d))
    (c : 'M_(n, 1)) (Y : 'M_(n, d)) :
  evolve (block_mx a%:M 0 0 B : 'M_(1 + n)) (block_mx h%:M 0 0 G : 'M_(1 + d))^T L (block_mx x r c Y) =
  block_mx ((1 + h * a) ^+ L *: x) (evolve a%:M G^T L r) (evolve B h%:M^T L c) (evolve B G^T L Y).
Proof.
elim: L => [|L IH]; first by rewrite expr0 scale1r.
rewrite [LHS]/evolve iterS -/(evolve _ _ _ _) IH tr_block_mx !trmx0 !mulmx_block.
rewrite !mul0mx !mulmx0 !addr0 !add0r add_block_mx; congr block_mx => //.
rewrite mul_scalar_mx tr_scalar_mx mul_mx_scalar !scalerA exprS -scalerDl; congr (_ *: _); ring.
Qed.

Lemma slow n d (B : 'M[C]_n) (W : 'M[C]_d) (r : C) : archimedean C -> 0 < r ->
  (forall h a, root (char_poly W^T) h -> root (char_poly B) a -> `|1 + h * a| < r) ->
  forall X eps, 0 < eps -> exists N, forall L, (N <= L)%N -> norm1 (evolve B W L X) <= eps * r ^+ L.
Proof.
move=> arch r0 below X eps e0; have [q /andP[q0 qr] [K K0 HK]] := growth_below r0 below.
have D0 : 0 < K * norm1 X + 1 by rewrite ltr_paddl ?ltr01 // mulr_ge0 ?norm1_ge0.
have [N HN] := smaller_power arch q0 qr (divr_gt0 e0 D0); exists N => L /HN Hq.
apply: le_trans (HK L X) _; rewrite mulrAC.
apply: (@le_trans _ _ (K * norm1 X * (eps / (K * norm1 X + 1) * r ^+ L))).
  by rewrite ler_wpmul2l ?mulr_ge0 ?norm1_ge0.
have -> : K * norm1 X * (eps / (K * norm1 X + 1) * r ^+ L) =
  eps * r ^+ L * (K * norm1 X / (K * norm1 X + 1)) by field; rewrite gt_eqF.
apply: ler_pimulr; first by rewrite mulr_ge0 ?exprn_ge0 // ltW.
by rewrite ler_pdivr_mulr // mul1r ler_addl ler01.
Qed.
End Split.

Section Mode.
Variables (C : numClosedFieldType) (n d : nat) (A : 'M[C]_(1 + n)) (H : 'M[C]_(1 + d)) (a h : C).
Variables (v : 'cV[C]_(1 + n)) (u : 'cV[C]_(1 + d)).
Hypotheses (arch : archimedean C) (two_tokens : (0 < n)%N).
Hypotheses (sa : simple A a) (sh : simple H h).
Hypotheses (vA : A *m v = a *: v) (uH : H *m u = h *: u) (v0 : v != 0) (u0 : u != 0).
(* All other pairs of eigenvalues give less. *)
Hypothesis dominates : forall h' a', root (char_poly H) h' -> root (char_poly A) a' ->
  (h', a') <> (h, a) -> `|1 + h' * a'| < `|1 + h * a|.
Local Notation mu := (1 + h * a).

Lemma root_factor m (B : 'M[C]_m) b (p : {poly C}) x : p = ('X - b%:P) * char_poly B ->
  root (char_poly B) x -> root p x.
Proof. by move=> -> rx; rewrite rootM rx orbT. Qed.
Lemma root_self (p q : {poly C}) b : p = ('X - b%:P) * q -> root p b.
Proof. by move=> ->; rewrite rootM root_XsubC eqxx. Qed.
Lemma scalar_root m (b x : C) : root (char_poly (b%:M : 'M[C]_m)) x -> x = b.
Proof.
rewrite -eigenvalue_root_char => /eigenvalueP[w]; rewrite mul_mx_scalar => E w0.
have /rV0Pn[j wj] := w0; apply: (mulIf wj).
by move/matrixP: E => /(_ 0 j); rewrite !mxE.
Qed.

Lemma mu_pos : 0 < `|mu|.
Proof.
have [P [Q [B [_ _ rB cA _]]]] := split_off sa vA v0.
have /closed_rootP[b rb] : size (char_poly B) != 1%N by rewrite size_char_poly eqSS -lt0n.
have ba : b <> a by move=> E; move: rb; rewrite E (negbTE rB).
apply: (@le_lt_trans _ _ `|1 + h * b|) => //; apply: dominates; first by case: sh.
  exact: root_factor cA rb.
by case.
Qed.
Lemma mu_n0 : mu != 0. Proof. by rewrite -normr_gt0 mu_pos. Qed.

(* X_L / mu^L -> (w X_0 z^T) v u^T, w and z the left eigenvectors, w v = 1 and z u = 1. *)
Theorem mode_limit : exists (w : 'rV[C]_(1 + n)) (z : 'rV[C]_(1 + d)),
  [/\ w *m A = a *: w, z *m H = h *: z, w *m v = 1%:M, z *m u = 1%:M &
   forall X0 eps, 0 < eps -> exists N, forall L, (N <= L)%N ->
   norm1 (mu ^- L *: evolve A H^T L X0 - (z *m X0^T *m w^T) 0 0 *: (v *m u^T)) <= eps].
Proof.
have [P [Q [B [PQ DA rB cA Qv]]]] := split_off sa vA v0.
have [S [T [G [ST DH rG cH Tu]]]] := split_off sh uH u0.
have QP := mulmx1C PQ; have TS := mulmx1C ST.
pose w : 'rV[C]_(1 + n) := row_mx 1%:M 0 *m P; pose z : 'rV[C]_(1 + d) := row_mx 1%:M 0 *m S.
have left m (M P' Q' : 'M[C]_(1 + m)) (D : 'M_m) b : P' *m Q' = 1%:M ->
    P' *m M *m Q' = block_mx b%:M 0 0 D -> row_mx 1%:M 0 *m P' *m M = b *: (row_mx 1%:M 0 *m P').
  move=> E1 E2; have E3 := mulmx1C E1.
  have -> : row_mx 1%:M 0 *m P' *m M = row_mx 1%:M 0 *m (P' *m M *m Q') *m P'.
    by rewrite -!mulmxA E3 mulmx1.
  rewrite E2 mul_row_block !mul1mx !mulmx0 !mul0mx !addr0 -scalemx1.
  by rewrite -[X in row_mx _ X](scaler0 _ b) -scale_row_mx -scalemxAl.
exists w, z; split.
- exact: left PQ DA.
- exact: left ST DH.
- by rewrite -Qv /w mulmxA -[_ *m P *m Q]mulmxA PQ mulmx1 mul_row_col mul1mx mul0mx addr0.
- by rewrite -Tu /z mulmxA -[_ *m S *m T]mulmxA ST mulmx1 mul_row_col mul1mx mul0mx addr0.
move=> X0 eps e0; have r0 := mu_pos.
pose Y := P *m X0 *m S^T.
pose y := (z *m X0^T *m w^T) 0 0.
have Ey : ulsubmx (Y : 'M_(1 + n, 1 + d)) = y%:M.
  have -> : ulsubmx (Y : 'M_(1 + n, 1 + d)) = row_mx 1%:M 0 *m Y *m (row_mx 1%:M 0)^T.
    rewrite tr_row_mx trmx1 trmx0 -{2}[Y]submxK mul_row_block !mul1mx !mul0mx !addr0.
    by rewrite mul_row_col mulmx1 mulmx0 addr0.
  have -> : row_mx 1%:M 0 *m Y *m (row_mx 1%:M 0)^T = (z *m X0^T *m w^T)^T.
    by rewrite /z /w /Y !trmx_mul !trmxK !mulmxA.
  by rewrite [_^T]mx11_scalar mxE.
pose k := norm1 Q * norm1 T^T; have k0 : 0 <= k by rewrite mulr_ge0 ?norm1_ge0.
pose t := eps / (3%:R * k + 1); have D0 : 0 < 3%:R * k + 1.
  by rewrite ltr_paddl ?ltr01 // mulr_ge0 ?ler0n.
have t0 : 0 < t by rewrite divr_gt0.
have ra : root (char_poly A) a by case: sa.
have rh : root (char_poly H) h by case: sh.
have [|N1 H1] := @slow C 1 d a%:M G^T `|mu| arch r0 _ (ursubmx (Y : 'M_(1 + n, 1 + d))) t t0.
  move=> h' a'; rewrite trmxK => rh' /scalar_root->; apply: dominates => //.
    exact: root_factor cH rh'.
  by case=> E; move: rh'; rewrite E (negbTE rG).
have [|N2 H2] := @slow C n 1 B h%:M^T `|mu| arch r0 _ (dlsubmx (Y : 'M_(1 + n, 1 + d))) t t0.
  move=> h' a'; rewrite trmxK => /scalar_root-> ra'; apply: dominates => //.
    exact: root_factor cA ra'.
  by case=> E; move: ra'; rewrite E (negbTE rB).
have [|N3 H3] := @slow C n d B G^T `|mu| arch r0 _ (drsubmx (Y : 'M_(1 + n, 1 + d))) t t0.
  move=> h' a'; rewrite trmxK => rh' ra'; apply: dominates.
  - exact: root_factor cH rh'. - exact: root_factor cA ra'.
  by case=> E _; move: rh'; rewrite E (negbTE rG).
exists (maxn N1 (maxn N2 N3)) => L; rewrite !geq_max => /andP[/H1 L1 /andP[/H2 L2 /H3 L3]].
set XL := evolve A H^T L X0; pose YL := P *m XL *m S^T.
have EX : XL = Q *m YL *m T^T.
  by rewrite /YL !mulmxA QP mul1mx -mulmxA -trmx_mul TS trmx1 mulmx1.
have EY : YL = block_mx (mu ^+ L *: y%:M) (evolve a%:M G^T L (ursubmx (Y : 'M_(1 + n, 1 + d))))
    (evolve B h%:M^T L (dlsubmx (Y : 'M_(1 + n, 1 + d)))) (evolve B G^T L (drsubmx (Y : 'M_(1 + n, 1 + d)))).
  by rewrite /YL /XL (evolve_sim _ _ _ _ PQ ST) DA DH -/Y -Ey -{1}[Y]submxK evolve_block.
have Ev : y *: (v *m u^T) = Q *m block_mx y%:M 0 0 0 *m T^T.
  rewrite -Qv -Tu trmx_mul -!mulmxA [unit0 C n *m _]mulmxA; rewrite scalemxAr scalemxAl; congr (_ *m (_ *m _)).
  rewrite /unit0 tr_col_mx trmx1 trmx0 mul_col_row !mulmx1 mulmx0 !mul0mx.
  by rewrite scale_block_mx !scaler0 scalemx1.
have -> : mu ^- L *: XL - y *: (v *m u^T) = Q *m (mu ^- L *: YL - block_mx y%:M 0 0 0) *m T^T.
  by rewrite mulmxBr mulmxBl -Ev EX -scalemxAr -scalemxAl.
rewrite EY scale_block_mx opp_block_mx add_block_mx scalerA mulVf ?expf_neq0 ?mu_n0 // scale1r.
rewrite subrr !subr0.
apply: le_trans (norm1_mul _ _) _; apply: le_trans (ler_wpmul2r (norm1_ge0 _) (norm1_mul _ _)) _.
rewrite norm1_block norm1_0 add0r.
have sc p q (M : 'M[C]_(p, q)) : norm1 M <= t * `|mu| ^+ L -> norm1 (mu ^- L *: M) <= t.
  move=> HM; have -> : norm1 (mu ^- L *: M) = `|mu| ^- L * norm1 M.
    rewrite /norm1 mulr_sumr; apply: eq_bigr => i _; rewrite mulr_sumr; apply: eq_bigr => j _.
    by rewrite mxE normrM normfV normrX.
  by rewrite mulrC ler_pdivr_mulr ?exprn_gt0.
apply: (@le_trans _ _ (norm1 Q * (t + (t + t)) * norm1 T^T)).
  rewrite ler_wpmul2r ?norm1_ge0 // ler_wpmul2l ?norm1_ge0 //.
  by apply: ler_add; [exact: sc | apply: ler_add; exact: sc].
have -> : norm1 Q * (t + (t + t)) * norm1 T^T = eps * (3%:R * k / (3%:R * k + 1)).
  by rewrite /t -/k; rewrite (_ : norm1 Q * _ * _ = 3%:R * k * (eps / (3%:R * k + 1))); [field; rewrite gt_eqF | rewrite /k; ring].
by apply: ler_pimulr (ltW e0) _; rewrite ler_pdivr_mulr // mul1r ler_addl ler01.
Qed.
End Mode.

(* Attention that exchanges two tokens and H = -1: the mode of the eigenvalue -1 dominates. *)
Local Notation C := algCnumClosedField.
Definition minus1 : 'M[C]_(1 + 0) := (-1)%:M.
Lemma simple1 (M : 'M[C]_(1 + 0)) : simple M (M 0 0).
Proof.
split; first by rewrite root_mx11.
by rewrite /char_poly det_mx11 !mxE eqxx mulr1n derivXsubC root1.
Qed.
Lemma simple_swap : simple swap (-1).
Proof.
rewrite /simple swap_char; split; first by rewrite /root !hornerE addNr mulr0.
rewrite derivM !derivE /root !hornerE /= addNr mulr0 add0r.
by rewrite -opprD oppr_eq0 -[1 + 1]/(2%:R) pnatr_eq0.
Qed.
Lemma simple_minus1 : simple minus1 (-1). Proof. by have := simple1 minus1; rewrite mxE. Qed.
Lemma minus1_1 : minus1 *m 1%:M = -1 *: (1%:M : 'cV[C]_(1 + 0)).
Proof. by rewrite mulmx1 scalemx1. Qed.
Lemma one_neq0 : (1%:M : 'cV[C]_(1 + 0)) != 0. Proof. exact: matrix_nonzero1. Qed.
Lemma swap_dominates h' a' : root (char_poly minus1) h' -> root (char_poly swap) a' -> (h', a') <> (-1, -1) ->
  `|1 + h' * a'| < `|1 + (-1) * (-1) : C|.
Proof.
rewrite root_mx11 mxE eqxx mulr1n => /eqP ->; rewrite swap_char rootM -polyC1 root_XsubC.
rewrite -[1%:P]opprK -polyCN root_XsubC => /orP[/eqP -> _ | /eqP -> []//].
by rewrite mulr1 subrr normr0 mulrNN mulr1 -[1 + 1]/(2%:R) normr_nat ltr0n.
Qed.
Definition mode_limit_instance :=
  @mode_limit C 1 0 swap minus1 (-1) (-1) sign 1%:M
    algC_archimedean isT simple_swap simple_minus1 swap_sign minus1_1 sign_neq0 one_neq0 swap_dominates.
