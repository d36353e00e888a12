(* T3a; Thm 1 of arXiv 2401.04301 v1 for real spectra of A and any H; T4b's signs; T11.4.  No axioms. *)
From mathcomp Require Import all_ssreflect all_algebra all_field.
From mathcomp.algebra_tactics Require Import ring.
From mathcomp.real_closed Require Import mxtens.
Require Import TwoTokens T1_blocks T1a_spectrum Control Powers Dynamics Norms Singular T4a_smoothing Verdicts.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Farthest.
Variable C : numClosedFieldType.
Implicit Types (h a z : C).

(* T3a (1) *)
Theorem distance h a : h != 0 -> `|1 + h * a| = `|h| * `|a - - h^-1|.
Proof. by move=> h0; rewrite -normrM opprK mulrDr mulfV // addrC. Qed.

Lemma normB2 (x y : C) : `|x - y| ^+ 2 = `|x| ^+ 2 - (x * y^* + y * x^*) + `|y| ^+ 2.
Proof. by rewrite !normCK rmorphB; move: (x^*) (y^*) => p q; ring. Qed.

(* A point a that is no nearer to z than any other is a vertex of their convex hull: in no convex
   combination that is a does another point have a positive weight.                              *)
Lemma vertex n (w p : 'I_n -> C) a z : (forall i, 0 <= w i) -> \sum_i w i = 1 ->
  a = \sum_i w i * p i -> (forall i, `|p i - z| <= `|a - z|) -> forall i, 0 < w i -> p i = a.
Proof.
move=> w0 w1 aE far.
have wr i : (w i)^* = w i by rewrite conj_Creal // ger0_real.
have sum : \sum_i w i * `|p i - a| ^+ 2 = \sum_i w i * `|p i - z| ^+ 2 - `|a - z| ^+ 2.
  have d : \sum_i w i * (p i - z) = a - z.
    by under eq_bigr do rewrite mulrBr; rewrite sumrB -aE -mulr_suml w1 mul1r.
  have d' : \sum_i w i * (p i - z)^* = (a - z)^*.
    by rewrite -d rmorph_sum; apply: eq_bigr => i _; rewrite rmorphM wr.
  transitivity (\sum_i (w i * `|p i - z| ^+ 2 - (w i * (p i - z) * (a - z)^* +
      w i * (p i - z)^* * (a - z)) + w i * `|a - z| ^+ 2)).
    apply: eq_bigr => i _; have -> : p i - a = (p i - z) - (a - z) by ring.
    by rewrite normB2; ring.
  rewrite big_split sumrB big_split /= -!mulr_suml d d' w1 mul1r normCK; ring.
have le0 : \sum_i w i * `|p i - a| ^+ 2 <= 0.
  rewrite sum subr_le0 -[X in _ <= X]mul1r -w1 mulr_suml; apply: ler_sum => i _.
  by rewrite ler_wpmul2l // ler_sqr ?nnegrE.
have t0 i : 0 <= w i * `|p i - a| ^+ 2 by rewrite mulr_ge0 ?exprn_ge0.
have Z : \sum_i w i * `|p i - a| ^+ 2 = 0 by apply/le_anti; rewrite le0 sumr_ge0.
move=> i wi; have /eqP : w i * `|p i - a| ^+ 2 = 0 by apply: (psumr_eq0P (fun i _ => t0 i) Z).
by rewrite mulf_eq0 (gt_eqF wi) /= expf_eq0 /= normr_eq0 subr_eq0 => /eqP.
Qed.

(* T3a (2): the dominant eigenvalue for h is the one farthest from -1/h, a vertex. *)
Theorem farthest n (p : 'I_n -> C) h i0 : h != 0 ->
  ((forall i, `|1 + h * p i| <= `|1 + h * p i0|) <-> (forall i, `|p i - - h^-1| <= `|p i0 - - h^-1|)) /\
  ((forall i, `|1 + h * p i| <= `|1 + h * p i0|) -> forall w : 'I_n -> C, (forall i, 0 <= w i) ->
     \sum_i w i = 1 -> p i0 = \sum_i w i * p i -> forall i, 0 < w i -> p i = p i0).
Proof.
move=> h0; have hp : 0 < `|h| by rewrite normr_gt0.
have E : (forall i, `|1 + h * p i| <= `|1 + h * p i0|) <-> (forall i, `|p i - - h^-1| <= `|p i0 - - h^-1|).
  by split=> H i; have := H i; rewrite !distance // ler_pmul2l.
split=> // /E far w w0 w1 aE i wi; exact: vertex w0 w1 aE far i wi.
Qed.

(* T3a (3): consensus, a = 1, wins iff -1/h lies in the farthest-point cell of 1. *)
Theorem voronoi n (p : 'I_n -> C) h : h != 0 ->
  (forall i, `|1 + h * p i| <= `|1 + h|) <-> (forall i, `|p i - - h^-1| <= `|1 - - h^-1|).
Proof.
move=> h0; have hp : 0 < `|h| by rewrite normr_gt0.
have E1 : `|1 + h| = `|h| * `|1 - - h^-1| by rewrite -distance // mulr1.
by split=> H i; have := H i; rewrite E1 distance // ler_pmul2l.
Qed.

(* Thm 1 of v1: the spectrum of A real, a1 its smallest eigenvalue, H any: an eigenvalue of
   I + H (x) A of largest modulus is 1 + h or 1 + h a1.                                          *)
Lemma between h a1 a s : 0 < s < 1 -> a = (1 - s) * a1 + s -> h != 0 -> a1 != 1 ->
  `|1 + h * a| ^+ 2 < (1 - s) * `|1 + h * a1| ^+ 2 + s * `|1 + h| ^+ 2.
Proof.
move=> /andP[s0 s1] -> h0 a10; have sr : s^* = s by rewrite conj_Creal // gtr0_real.
have p : 0 < s * (1 - s) * `|h * (1 - a1)| ^+ 2.
  apply: mulr_gt0; first by rewrite mulr_gt0 ?subr_gt0.
  by rewrite exprn_gt0 // normr_gt0 mulf_neq0 // subr_eq0 eq_sym.
rewrite -subr_gt0; set D := (X in 0 < X); suff -> : D = s * (1 - s) * `|h * (1 - a1)| ^+ 2 by [].
rewrite /D !normCK !(rmorphD, rmorphN, rmorphM, rmorph1) sr.
by move: (h^*) (a1^*) => g b; ring.
Qed.

Lemma root_kron n d (H : 'M[C]_d) (B : 'M[C]_n) h a : root (char_poly H) h -> root (char_poly B) a ->
  root (char_poly (1%:M + H *t B)) (1 + h * a).
Proof.
have [h' [a' [-> -> ->]]] := spectrum_with_multiplicity H B.
rewrite /root !horner_prod => /prodf_eq0[j _]; rewrite hornerD hornerN hornerX hornerC subr_eq0.
move=> /eqP-> /prodf_eq0[i _]; rewrite hornerD hornerN hornerX hornerC subr_eq0 => /eqP->.
rewrite (bigD1 j) //= horner_prod (bigD1 i) //= hornerD hornerN hornerX hornerC subrr.
by rewrite !mul0r.
Qed.

Theorem v1_thm1 n d (A : 'M[C]_(1 + n)) (H : 'M[C]_d) (a1 : C) :
  A *m e C (1 + n) = e C (1 + n) ->
  (forall a, root (char_poly (Bp A)) a -> a \is Num.real /\ a1 <= a < 1) ->
  root (char_poly (Bp A)) a1 ->
  forall mu, root (char_poly (1%:M + H *t A)) mu ->
  (forall mu', root (char_poly (1%:M + H *t A)) mu' -> `|mu'| <= `|mu|) ->
  exists2 h, root (char_poly H) h & mu = 1 + h * 1 \/ mu = 1 + h * a1.
Proof.
move=> A1 Ra r1 mu rmu top; have [h [a [rh ra Emu]]] := kron_root rmu.
have both x : root (char_poly A) x <-> x = 1 \/ root (char_poly (Bp A)) x.
  rewrite (char_poly_quotient A1) rootM; split.
    by case/orP=> [|->]; [rewrite rootE hornerD hornerX hornerN hornerC subr_eq0 => /eqP; left | right].
  by case=> [->|->]; rewrite ?orbT // rootE hornerD hornerX hornerN hornerC subrr eqxx.
exists h => //; have [a_1|/[dup] ra' /Ra[ar /andP[lo hi]]] := (both a).1 ra.
  by left; rewrite Emu a_1.
have [h0|h0] := eqVneq h 0; first by left; rewrite Emu h0 !mul0r.
have [E|ne] := eqVneq a a1; first by right; rewrite Emu E.
have [_ /andP[_ a11]] := Ra _ r1.
have d0 : 0 < 1 - a1 by rewrite subr_gt0.
pose s := (a - a1) / (1 - a1).
have s01 : 0 < s < 1.
  apply/andP; rewrite /s; split.
    by rewrite divr_gt0 // subr_gt0 lt_neqAle eq_sym ne.
  by rewrite ltr_pdivr_mulr // mul1r ltr_add2r.
have as_ : a = (1 - s) * a1 + s by rewrite /s; field; rewrite gt_eqF.
have big x : x = 1 \/ root (char_poly (Bp A)) x -> `|1 + h * x| ^+ 2 <= `|mu| ^+ 2.
  by move=> /both rx; rewrite ler_sqr ?nnegrE //; apply: top; exact: root_kron.
have /andP[s0 s1] := s01; have s1' : 0 <= 1 - s by rewrite subr_ge0 ltW.
have a1n : a1 != 1 by rewrite lt_eqF.
have lt := between s01 as_ h0 a1n; rewrite -Emu in lt.
have le : (1 - s) * `|1 + h * a1| ^+ 2 + s * `|1 + h| ^+ 2 <= `|mu| ^+ 2.
  have -> : `|mu| ^+ 2 = (1 - s) * `|mu| ^+ 2 + s * `|mu| ^+ 2 by ring.
  apply: ler_add; first by apply: (ler_wpmul2l s1'); apply: big; right.
  by apply: (ler_wpmul2l (ltW s0)); rewrite -[h]mulr1; apply: big; left.
by have := lt_le_trans lt le; rewrite ltxx.
Qed.
End Farthest.

(* T4b (3): a mode off consensus has entries of both signs where pi > 0. *)
Theorem both_signs (R : realFieldType) n (A : 'M[R]_n) (pi : 'rV[R]_n) (v : 'cV[R]_n) (a : R) :
  pi *m A = pi -> (forall i, 0 < pi 0 i) -> A *m v = a *: v -> a != 1 -> v != 0 ->
  pi *m v = 0 /\ exists i k, v i 0 < 0 < v k 0.
Proof.
move=> piA pos vA a1 v0; have orth : pi *m v = 0.
  have E : (1 - a) *: (pi *m v) = 0.
    by rewrite scalerBl scale1r scalemxAr -vA mulmxA piA subrr.
  by move/eqP: E; rewrite scaler_eq0 subr_eq0 eq_sym (negbTE a1) => /eqP.
split=> //; have S : \sum_k pi 0 k * v k 0 = 0 by move/matrixP: orth => /(_ 0 0); rewrite !mxE.
have [i vi] : exists i, v i 0 != 0.
  apply/existsP; apply: contraNT v0 => /existsPn Z; apply/eqP/matrixP=> i j; rewrite ord1 mxE.
  by apply/eqP; move: (Z i); rewrite negbK.
have one_sign (t : R) : t != 0 -> (forall k, 0 <= t * v k 0) -> False.
  move=> t0 nn; have T : \sum_k pi 0 k * (t * v k 0) = 0.
    by under eq_bigr do rewrite mulrCA; rewrite -mulr_sumr S mulr0.
  have nn' k : 0 <= pi 0 k * (t * v k 0) by rewrite mulr_ge0 // ltW.
  have /eqP : pi 0 i * (t * v i 0) = 0 by apply: (psumr_eq0P (fun k _ => nn' k) T).
  by rewrite !mulf_eq0 (negbTE t0) (negbTE vi) (gt_eqF (pos i)).
have [k vk] : exists k, 0 < v k 0.
  apply/existsP; apply: contraT => /existsPn none; exfalso; apply: (@one_sign (-1)).
    by rewrite oppr_eq0 oner_eq0.
  by move=> k; rewrite mulN1r oppr_ge0 leNgt none.
have [l vl] : exists l, v l 0 < 0.
  apply/existsP; apply: contraT => /existsPn none; exfalso; apply: (@one_sign 1).
    exact: oner_neq0.
  by move=> l; rewrite mul1r leNgt none.
by exists l, k; rewrite vl vk.
Qed.

(* T11.4: H = -I, A > 0. *)
Section MinusOne.
Variables (C : numClosedFieldType) (n d : nat) (A : 'M[C]_(1 + n)) (pi : 'rV[C]_(1 + n)).
Variable eps : C.
Hypothesis A1 : A *m e C (1 + n) = e C (1 + n).
Hypotheses (eps0 : 0 < eps) (Apos : forall i j, eps <= A i j).
Hypotheses (piA : pi *m A = pi) (pi1 : pi *m e C (1 + n) = 1%:M).
Local Notation H := (- 1%:M : 'M[C]_d).
Variable X0 : 'M[C]_(1 + n, d).
Local Notation X L := (evolve A H^T L X0).

Lemma minus_step L : X L.+1 = X L - A *m X L.
Proof. by rewrite /evolve iterS linearN /= trmx1 mulmxN mulmx1. Qed.
Lemma minus_mean L : pi *m X L.+1 = 0.
Proof. by rewrite minus_step mulmxBr mulmxA piA subrr. Qed.
Lemma minus_diff L : diff X0 != 0 -> diff (X L) != 0.
Proof.
rewrite (diff_evolve _ A1); set D := diff X0 => D0; elim: L => // L IH.
set Y := evolve _ _ _ _ in IH *.
have -> : evolve (Bp A) H^T L.+1 D = (1%:M - Bp A) *m Y.
  have -> : evolve (Bp A) H^T L.+1 D = Y + Bp A *m Y *m H^T by [].
  by rewrite linearN /= trmx1 mulmxN mulmx1 mulmxDl mul1mx mulNmx.
apply: contraNneq IH => E.
have u : 1%:M - Bp A \in unitmx.
  apply: quotient_unit => a /(perron A1 eps0 Apos) lt1; apply: contraTneq lt1 => ->.
  by rewrite normr1 ltxx.
by rewrite -[Y](mulKmx u) E mulmx0.
Qed.
Lemma HFC0 Y : (HFC Y == 0 :> 'M[C]_(1 + n, d)) = (diff Y == 0).
Proof.
apply/eqP/eqP => E; last by rewrite HFC_diff E col_mx0 mulmx0.
by rewrite {1}[Y]HFC_LFC diffD diff_one addr0 E /diff mulmx0; apply/matrixP=> i j; rewrite !mxE.
Qed.

(* (1): c = 0 from layer 1 on, HFC != 0 and HFC/LFC >= 1/(sqrt n delta). *)
Theorem minus_one L : HFC X0 != 0 -> [/\ pi *m X L.+1 = 0, HFC (X L.+1) != 0 &
  normF (LFC (X L.+1)) <= sqrtC (1 + n)%:R * delta pi * normF (HFC (X L.+1))].
Proof.
rewrite !HFC0 => D0; split; [exact: minus_mean | exact: minus_diff|].
rewrite {1}/normF LFC_norm sqrtCM ?nnegrE ?ler0n ?norm2_ge0 // -mulrA.
rewrite ler_wpmul2l ?sqrtC_ge0 ?ler0n // -/(normF (mean (X L.+1))).
rewrite (coupling (X L.+1) pi1) minus_mean add0r.
rewrite -ler_sqr ?nnegrE ?mulr_ge0 ?normF_ge0 // exprMn !normF_sqr.
exact: norm2_mul.
Qed.

(* (2): A doubly stochastic, pi = 1/n. *)
Theorem minus_one_doubly L : pi = (1 + n)%:R^-1 *: (e C (1 + n))^T -> LFC (X L.+1) = 0.
Proof. by move=> E; rewrite /LFC /mean scalemxAl -E minus_mean mulmx0. Qed.

(* (3): a state at consensus becomes 0 in one layer. *)
Theorem minus_one_consensus c : X0 = e C (1 + n) *m c -> X 1 = 0.
Proof. by move=> E; rewrite minus_step /= E mulmxA A1 subrr. Qed.
End MinusOne.

(* At these values the hypotheses hold. *)
Definition minus_one_instance :=
  @minus_one algCnumClosedField 1 1 uniform halves _ uniform1 half_gt0 half_le_uniform uniform_pi halves1.
Definition minus_one_consensus_instance := @minus_one_consensus algCnumClosedField 1 1 uniform uniform1.
Definition minus_one_doubly_instance := @minus_one_doubly algCnumClosedField 1 1 uniform halves uniform_pi.
