(* T7b-certificate in Euclid's norm: the floor of HFC/LFC, and one symmetric head with spectrum in
   [-q, -p].  A symmetric matrix over a real closed field is as large as its largest eigenvalue. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.real_closed Require Import complex.
From mathcomp.algebra_tactics Require Import ring.
Require Import T1f_floor T7b_certificate T7b_matrix.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Symmetric.
Variable R : rcfType.
Definition dot n (u v : 'rV[R]_n) : R := (u *m v^T) 0 0.
Definition sq n (u : 'rV[R]_n) : R := dot u u.

Lemma sqE n (u : 'rV[R]_n) : sq u = \sum_j u 0 j ^+ 2.
Proof. by rewrite /sq /dot mxE; apply: eq_bigr => j _; rewrite mxE. Qed.
Lemma sq_ge0 n (u : 'rV[R]_n) : 0 <= sq u.
Proof. by rewrite sqE sumr_ge0 // => j _; exact: sqr_ge0. Qed.
Lemma sq_eq0 n (u : 'rV[R]_n) : (sq u == 0) = (u == 0).
Proof.
apply/eqP/eqP => [|->]; last by rewrite /sq /dot mul0mx mxE.
rewrite sqE => /psumr_eq0P H; apply/rowP => j; rewrite mxE.
by apply/eqP; rewrite -sqrf_eq0 H // => i _; exact: sqr_ge0.
Qed.
Lemma dotC n (u v : 'rV[R]_n) : dot u v = dot v u.
Proof. by rewrite /dot -[v *m _]trmxK trmx_mul trmxK [RHS]mxE. Qed.
Lemma dotZl n a (u v : 'rV[R]_n) : dot (a *: u) v = a * dot u v.
Proof. by rewrite /dot -scalemxAl mxE. Qed.
Lemma dotDl n (u v w : 'rV[R]_n) : dot (u + v) w = dot u w + dot v w.
Proof. by rewrite /dot mulmxDl mxE. Qed.
Lemma dotBl n (u v w : 'rV[R]_n) : dot (u - v) w = dot u w - dot v w.
Proof. by rewrite -scaleN1r dotDl dotZl mulN1r. Qed.
Lemma sqZ n a (u : 'rV[R]_n) : sq (a *: u) = a ^+ 2 * sq u.
Proof. by rewrite /sq dotZl dotC dotZl mulrA expr2. Qed.
Lemma dot_sym n (S : 'M[R]_n) (u v : 'rV[R]_n) : S^T = S -> dot (u *m S) v = dot u (v *m S).
Proof. by move=> E; rewrite /dot trmx_mul E mulmxA. Qed.
Lemma scal_dot n (u v : 'rV[R]_n) : u *m v^T = (dot u v)%:M.
Proof. by rewrite {1}[u *m _]mx11_scalar. Qed.

Lemma real_eigen m (S : 'M[R]_m.+1) : S^T = S -> exists l (v : 'rV[R]_m.+1), v != 0 /\ v *m S = l *: v.
Proof.
move=> sym; pose f : {rmorphism R -> R[i]} := [rmorphism of real_complex R]; pose Sc := map_mx f S.
have /closed_rootP[z] : size (char_poly Sc) != 1%N by rewrite size_char_poly.
rewrite -eigenvalue_root_char => /eigenvalueP[x xS x0].
pose al := complex.Re z; pose be := complex.Im z.
pose T := S - al%:M; pose M := T *m T + (be ^+ 2)%:M.
have zE : z = f al + ('i * f be)%C by rewrite /al /be {1}[z]complexE.
have MM : map_mx f M = (Sc - z%:M) *m (Sc - (f al - 'i%C * f be)%:M).
  have ST : Sc = map_mx f T + (f al)%:M.
    by rewrite /T map_mxB map_scalar_mx /= subrK.
  pose b := ('i * f be)%C.
  have E1 : Sc - z%:M = map_mx f T - b%:M by rewrite ST zE [(f al + _)%:M]raddfD /= opprD addrA addrK.
  have E2 : Sc - (f al - b)%:M = map_mx f T + b%:M.
    by rewrite ST [(f al - _)%:M]raddfB /= opprB addrA addrAC addrK.
  rewrite -/b E1 E2 /M map_mxD map_mxM map_scalar_mx /= mulmxBl !mulmxDr -scalar_mxC.
  rewrite opprD addrA addrK -scalar_mxM -expr2 exprMn sqr_i mulN1r.
  by rewrite raddfN opprK rmorphX.
have d0 : \det M == 0.
  have : f (\det M) == 0.
    rewrite -det_map_mx MM det_mulmx mulf_eq0; apply/orP; left.
    by apply/det0P; exists x => //; rewrite mulmxBr xS mul_mx_scalar subrr.
  by rewrite fmorph_eq0.
case/det0P: d0 => v v0 vM; exists al, v; split=> //.
have symT : T^T = T by rewrite /T linearB /= sym tr_scalar_mx.
have ME : M = T *m T + (be ^+ 2)%:M by [].
have TE : T = S - al%:M by [].
clear MM; clearbody M; clearbody T.
have E : sq (v *m T) + be ^+ 2 * sq v = 0.
  have : dot (v *m M) v = 0 by rewrite vM /dot mul0mx mxE.
  move=> <-; rewrite ME mulmxDr mulmxA mul_mx_scalar dotDl dotZl.
  by rewrite /sq -(dot_sym (v *m T) v symT).
have q0 : sq (v *m T) = 0.
  have : sq (v *m T) <= 0.
    by rewrite -E ler_addl mulr_ge0 ?sqr_ge0 ?sq_ge0.
  by move=> le; apply/eqP; rewrite eq_le le sq_ge0.
move/eqP: q0; rewrite sq_eq0 TE mulmxBr mul_mx_scalar subr_eq0 => /eqP.
by [].
Qed.

(* A reflection takes the first unit vector to the direction of u. *)
Lemma reflection m (u : 'rV[R]_(1 + m)) : u != 0 -> exists (Q : 'M[R]_(1 + m)) c,
  [/\ Q^T = Q, Q *m Q = 1%:M, c != 0 & (row_mx 1%:M 0 : 'rV[R]_(1 + m)) *m Q = c *: u].
Proof.
move=> u0; set e : 'rV[R]_(1 + m) := row_mx 1%:M 0.
have su : 0 < sq u by rewrite lt_def sq_eq0 u0 sq_ge0.
pose c := (Num.sqrt (sq u))^-1.
have cp : 0 < c by rewrite invr_gt0 sqrtr_gt0.
have c0 : c != 0 by rewrite gt_eqF.
pose x := c *: u; pose w := x - e.
have sx : sq x = 1.
  by rewrite /x sqZ /c exprVn sqr_sqrtr ?sq_ge0 // mulVf ?gt_eqF.
have se : sq e = 1.
  by rewrite /sq /dot /e tr_row_mx mul_row_col trmx0 mulmx0 addr0 trmx1 mulmx1 mxE eqxx.
have [w0|wn] := eqVneq w 0.
  exists 1%:M, c; split; rewrite ?trmx1 ?mulmx1 //.
  by apply/eqP; rewrite eq_sym -subr_eq0 -/x -/w w0.
have sw : sq w != 0 by rewrite sq_eq0.
have swE : sq w = 2%:R * (1 - dot e x).
  have -> : sq w = sq x - dot x e - dot e x + sq e.
    by rewrite /sq /w dotBl [dot x _]dotC [dot e (x - e)]dotC !dotBl; ring.
  by rewrite sx se (dotC x e); ring.
have ew : dot e w = - (2%:R^-1 * sq w).
  have -> : dot e w = dot e x - sq e by rewrite dotC /w dotBl dotC.
  by rewrite swE se; field.
pose Q := 1%:M - (2%:R / sq w) *: (w^T *m w).
exists Q, c; split=> //.
- by rewrite /Q linearB linearZ /= trmx1 trmx_mul trmxK.
- have ww : (w^T *m w) *m (w^T *m w) = sq w *: (w^T *m w).
    by rewrite mulmxA -[w^T *m w *m w^T]mulmxA scal_dot -/(sq w) mul_mx_scalar -scalemxAl.
  rewrite /Q; move: (w^T *m w) (2%:R / sq w) (divfK sw 2%:R) ww => G k ks GG.
  have -> : (1%:M - k *: G) *m (1%:M - k *: G) = 1%:M + (k * (k * sq w) - k - k) *: G.
    rewrite mulmxBr mulmx1 mulmxBl mul1mx -scalemxAl -scalemxAr GG !scalerA !scalerBl.
    by rewrite opprB -addrA [- _ + _]addrC mulrA.
  by rewrite ks (_ : _ - _ - _ = 0) ?scale0r ?addr0 //; ring.
- rewrite /Q mulmxBr mulmx1 -scalemxAr mulmxA scal_dot mul_scalar_mx scalerA ew.
  rewrite (_ : _ * _ = -1); last by field.
  by rewrite scaleN1r opprK /w addrC subrK.
Qed.

Lemma sq_reflected n (Q : 'M[R]_n) (v : 'rV[R]_n) : Q^T = Q -> Q *m Q = 1%:M -> sq (v *m Q) = sq v.
Proof. by move=> s i; rewrite /sq (dot_sym _ _ s) -mulmxA i mulmx1. Qed.

Theorem symmetric_norm m (S : 'M[R]_m) r : S^T = S -> 0 <= r ->
  (forall l, eigenvalue S l -> `|l| <= r) -> forall v : 'rV[R]_m, sq (v *m S) <= r ^+ 2 * sq v.
Proof.
elim: m S => [|m IH] S sym r0 Hr v.
  by rewrite !sqE !big_ord0 mulr0.
have [l [u [u0 uS]]] := real_eigen sym.
have [Q [c [Qs QQ c0 eQ]]] := reflection u0.
set e : 'rV[R]_(1 + m) := row_mx 1%:M 0 in eQ.
have lr : `|l| <= r by apply: Hr; apply/eigenvalueP; exists u.
pose B : 'M[R]_(1 + m) := Q *m S *m Q.
have Bs : B^T = B by rewrite /B !trmx_mul Qs sym mulmxA.
have eB : e *m B = l *: e.
  have -> : e *m B = (e *m Q) *m S *m Q by rewrite /B !mulmxA.
  by rewrite eQ -scalemxAl uS scalerA mulrC -scalerA -eQ -scalemxAl -mulmxA QQ mulmx1.
have [ul ur] : ulsubmx B = l%:M /\ ursubmx B = 0.
  move: eB; rewrite -{1}[B]submxK /e mul_row_block !mul1mx !mul0mx !addr0 scale_row_mx scaler0.
  by rewrite scalemx1 => /eq_row_mx[].
have dl : dlsubmx B = 0.
  by rewrite -Bs -trmx_ursub ur trmx0.
pose S1 := drsubmx B.
have BE : B = block_mx l%:M 0 0 S1 by rewrite -[B]submxK ul ur dl.
have S1s : S1^T = S1 by rewrite /S1 trmx_drsub Bs.
have S1r l' : eigenvalue S1 l' -> `|l'| <= r.
  case/eigenvalueP => w wS w0; apply: Hr; apply/eigenvalueP.
  exists ((row_mx 0 w : 'rV[R]_(1 + m)) *m Q).
    have -> : row_mx 0 w *m Q *m S = row_mx 0 w *m B *m Q.
      by rewrite /B !mulmxA -[RHS]mulmxA QQ mulmx1.
    rewrite BE mul_row_block !mul0mx !mulmx0 !add0r wS.
    by rewrite -[in LHS](scaler0 _ l') -scale_row_mx -scalemxAl.
  apply: contraNneq w0 => E.
  have : (row_mx 0 w : 'rV[R]_(1 + m)) *m Q *m Q = 0 by rewrite E mul0mx.
  by rewrite -mulmxA QQ mulmx1 -[0 in RHS]row_mx0 => /eq_row_mx[_ ->].
pose y : 'rV[R]_(1 + m) := v *m Q.
have sv : sq v = sq y by rewrite /y sq_reflected.
have svS : sq (v *m S) = sq (y *m B).
  by rewrite -(sq_reflected (v *m S) Qs QQ) /y /B !mulmxA -[v *m Q *m Q]mulmxA QQ mulmx1.
have split_sq (a : 'rV[R]_1) (b : 'rV[R]_m) : sq (row_mx a b) = sq a + sq b.
  by rewrite /sq /dot tr_row_mx mul_row_col mxE.
rewrite sv svS BE -[y]hsubmxK mul_row_block !mulmx0 addr0 add0r !split_sq mulrDr.
apply: ler_add; last exact: IH.
rewrite mul_mx_scalar sqZ; apply: ler_wpmul2r; first exact: sq_ge0.
by rewrite -[X in X <= _]real_normK ?num_real // ler_expn2r ?nnegrE.
Qed.

Lemma parallelogram n (p q : 'rV[R]_n) : 2%:R * (sq p + sq q) = sq (p - q) + sq (p + q).
Proof.
have E (u v w : 'rV[R]_n) : dot u (v + w) = dot u v + dot u w by rewrite dotC dotDl !(dotC u).
have F (u v : 'rV[R]_n) : dot u (- v) = - dot u v by rewrite dotC -scaleN1r dotZl mulN1r dotC.
rewrite /sq dotBl dotDl !E !F; move: (dot p p) (dot p q) (dot q p) (dot q q) => ? ? ? ?.
by ring.
Qed.

(* Euclid's norm is one. *)
Definition norm2 d (v : 'rV[R]_d) : R := Num.sqrt (sq v).
Lemma norm2_ge0 d (v : 'rV[R]_d) : 0 <= norm2 v. Proof. exact: sqrtr_ge0. Qed.
Lemma norm2_sq d (v : 'rV[R]_d) : norm2 v ^+ 2 = sq v.
Proof. by rewrite sqr_sqrtr // sq_ge0. Qed.
Lemma norm2_scale d a (v : 'rV[R]_d) : norm2 (a *: v) = `|a| * norm2 v.
Proof. by rewrite /norm2 sqZ sqrtrM ?sqr_ge0 // sqrtr_sqr. Qed.
Lemma norm2_add d (u v : 'rV[R]_d) : norm2 (u + v) <= norm2 u + norm2 v.
Proof.
have p0 : 0 <= norm2 u + norm2 v by rewrite addr_ge0 ?norm2_ge0.
rewrite -(ger0_norm p0) -sqrtr_sqr ler_wsqrtr // sqrrD !norm2_sq.
have -> : sq (u + v) = sq u + dot u v *+ 2 + sq v.
  rewrite {1}/sq dotDl [dot u _]dotC [dot v (u + v)]dotC !dotDl -/(sq u) -/(sq v) (dotC v u).
  by move: (sq u) (sq v) (dot u v) => ? ? ?; ring.
rewrite ler_add2r ler_add2l ler_muln2r /=.
have d2 : dot u v ^+ 2 <= sq u * sq v.
  have E : dot u v = \sum_j u 0 j * v 0 j.
    by rewrite /dot mxE; apply: eq_bigr => j _; rewrite mxE.
  by rewrite E !sqE cauchy_schwarz.
apply: le_trans (ler_norm _) _; rewrite -sqrtr_sqr /norm2 -sqrtrM ?sq_ge0 //.
exact: ler_wsqrtr.
Qed.
Lemma norm2_le d (M : 'M[R]_d) c (v : 'rV[R]_d) : 0 <= c ->
  sq (v *m M) <= c ^+ 2 * sq v -> norm2 (v *m M) <= c * norm2 v.
Proof.
move=> c0 H; rewrite -[c](ger0_norm c0) -sqrtr_sqr /norm2 -sqrtrM ?sqr_ge0 //.
exact: ler_wsqrtr.
Qed.

Section Floor.
Variables (n' d : nat).
Local Notation n := n'.+1.
Implicit Types X : 'M[R]_(n, d).
Local Notation diam := (@diam R n' d (@norm2 d)).
Definition HFC2r X : R := \sum_i sq (row i X - rowmean X).
Definition LFC2r X : R := n%:R * sq (rowmean X).

(* diam <= sqrt 2 ||X - 1m||, hence the floor of HFC/LFC, as squares. *)
Lemma diam_HFC X : diam X ^+ 2 <= 2%:R * HFC2r X.
Proof.
rewrite /diam norm2_sq; set i := (far _ X).1; set l := (far _ X).2.
have [->|il] := eqVneq i l.
  rewrite subrr /sq /dot mul0mx mxE mulr_ge0 ?ler0n // sumr_ge0 // => j _; exact: sq_ge0.
pose p := row i X - rowmean X; pose q := row l X - rowmean X.
have -> : row i X - row l X = p - q by rewrite /p /q opprB addrA subrK.
have pq : sq p + sq q <= HFC2r X.
  rewrite /HFC2r (bigD1 i) //= (bigD1 l) /=; last by rewrite eq_sym.
  by rewrite addrA ler_addl sumr_ge0 // => j _; exact: sq_ge0.
apply: le_trans (ler_wpmul2l (ler0n _ 2) pq).
by rewrite parallelogram ler_addl sq_ge0.
Qed.

Theorem matrix_floor X K : 0 < diam X -> norm2 (rowmean X) / diam X <= K ->
  LFC2r X <= 2%:R * n%:R * K ^+ 2 * HFC2r X /\ 0 < HFC2r X.
Proof.
move=> d0; rewrite ler_pdivr_mulr // => mK.
have H := diam_HFC X; have d2 : 0 < diam X ^+ 2 by rewrite exprn_gt0.
have h0 : 0 < HFC2r X by move: (lt_le_trans d2 H); rewrite pmulr_rgt0 ?ltr0n.
split=> //; have K0 : 0 <= K by rewrite -(pmulr_lge0 _ d0) (le_trans _ mK) // norm2_ge0.
have mm : sq (rowmean X) <= K ^+ 2 * diam X ^+ 2.
  by rewrite -norm2_sq -exprMn ler_expn2r ?nnegrE ?norm2_ge0 // mulr_ge0 // ltW.
have -> : 2%:R * n%:R * K ^+ 2 * HFC2r X = n%:R * (K ^+ 2 * (2%:R * HFC2r X)) by ring.
rewrite /LFC2r ler_wpmul2l ?ler0n //; apply: le_trans mm _.
by rewrite ler_wpmul2l ?sqr_ge0.
Qed.

(* One symmetric head, attention arbitrary: spec(W) in [-q, -p]. *)
Variables (A : nat -> 'M[R]_(n, d) -> 'I_1 -> 'M[R]_n) (W : nat -> 'M[R]_(n, d) -> 'I_1 -> 'M[R]_d).
Variables (t p q : R).
Variable X : 'M[R]_(n, d).
Local Notation A_at l := (A l (heads_state A W l X)).
Local Notation W_at l := (W l (heads_state A W l X)).
Hypothesis stochA : forall l g, stochastic (A_at l g).
Hypothesis tauA : forall l g, tau_le (A_at l g) t.
Hypothesis symW : forall l g, (W_at l g)^T = W_at l g.
Hypothesis specW : forall l g a, eigenvalue (W_at l g) a -> - q <= a <= - p.
Hypotheses (t_ge0 : 0 <= t) (p_ge0 : 0 <= p) (ptq : t * q < p) (pq : p <= q).
Hypothesis q_range : q * (1 + t) < 2%:R.

(* r = ||I + W||, w = ||W||: r + t w < 1 asks for p > t q and q (1 + t) < 2. *)
Lemma asks : (Num.max (1 - p) (q - 1) + t * q < 1) = (t * q < p) && (q * (1 + t) < 2%:R).
Proof.
rewrite -ltr_subr_addr lt_maxl; congr (_ && _).
  by rewrite ltr_add2l ltr_opp2.
by rewrite ltr_subl_addr addrAC ltr_subr_addr mulrDr mulr1 [q * t]mulrC -(natrD _ 1 1).
Qed.

Theorem symmetric_head L : 0 < diam X ->
  let Y := heads_state A W L X in
  let K := Num.max (norm2 (rowmean X) / diam X)
             ((1 - n%:R^-1) * q / (1 - t * q - Num.max (1 - p) (q - 1))) in
  norm2 (rowmean Y) / diam Y <= K /\ LFC2r Y <= 2%:R * n%:R * K ^+ 2 * HFC2r Y /\ 0 < HFC2r Y.
Proof.
move=> d0 Y K; have q0 : 0 <= q by apply: le_trans pq.
have [oL uL] : 0 < diam Y /\ norm2 (rowmean Y) / diam Y <= K.
  apply: (@matrix_certificate R n' d _ (@norm2_ge0 d) (@norm2_scale d) (@norm2_add d) 1
    A W (fun _ _ => q)) => //.
  - move=> l g v; apply: norm2_le => //; apply: symmetric_norm => // a /specW/andP[a1 a2].
    rewrite ler_norml a1 (le_trans a2) // (le_trans _ q0) // oppr_le0 //.
  - by move=> l; rewrite big_ord1.
  - move=> l v; rewrite big_ord1; apply: norm2_le; first by rewrite le_maxr; case: (lerP 0 (1 - p)) => //= h; rewrite subr_ge0 (le_trans _ pq) // ltW // -subr_lt0.
    apply: symmetric_norm => [||a].
    + by rewrite linearD /= trmx1 symW.
    + by rewrite le_maxr; case: (lerP 0 (1 - p)) => //= h; rewrite subr_ge0 (le_trans _ pq) // ltW // -subr_lt0.
    case/eigenvalueP => v1 vE v0.
    have /specW/andP[a1 a2] : eigenvalue (W_at l ord0) (a - 1).
      apply/eigenvalueP; exists v1 => //.
      by rewrite scalerBl scale1r -vE mulmxDr mulmx1 addrC addKr.
    rewrite ler_norml; apply/andP; split.
      rewrite ler_oppl le_maxr; apply/orP; right.
      by rewrite ler_subr_addr addrC -opprB ler_oppl.
    rewrite le_maxr; apply/orP; left.
    by rewrite addrC -ler_subl_addr.
  - by rewrite le_maxr; case: (lerP 0 (1 - p)) => //= h; rewrite subr_ge0 (le_trans _ pq) // ltW // -subr_lt0.
  - by rewrite asks ptq q_range.
by split=> //; exact: matrix_floor.
Qed.
End Floor.
End Symmetric.

(* The hypotheses hold for uniform attention and W = -1. *)
Section Instances.
Variable R : rcfType.
Let stoch0 (l : nat) (g : 'I_1) : stochastic (@even R).
Proof. by split=> [i j|i]; rewrite ?mxE ?invr_ge0 ?ler0n // big_ord_recl big_ord1 !mxE halves_make_1. Qed.
Let tau0 (l : nat) (g : 'I_1) : tau_le (@even R) 0.
Proof. by move=> i k; rewrite mulr0 big1 // => j _; rewrite !mxE subrr normr0. Qed.
Let symW (l : nat) (g : 'I_1) : (- 1%:M)^T = - 1%:M :> 'M[R]_1.
Proof. by rewrite linearN /= trmx1. Qed.
Let specW (l : nat) (g : 'I_1) a : eigenvalue (- 1%:M : 'M[R]_1) a -> - 1 <= a <= - (1 : R).
Proof.
move=> /eigenvalueP[v].
rewrite mulmxN mulmx1 -scaleN1r => /eqP; rewrite -subr_eq0 -scalerBl scaler_eq0 subr_eq0.
by case/orP=> [/eqP <- _ | -> //]; rewrite lexx.
Qed.
Let ptq : 0 * 1 < (1 : R). Proof. by rewrite mul0r ltr01. Qed.
Let q_range : 1 * (1 + 0) < (2%:R : R). Proof. by rewrite mul1r addr0 ltr1n. Qed.
Definition symmetric_head_instance (X : 'M[R]_(2, 1)) :=
  @symmetric_head R 1 1 (@attends R) (@turns R) 0 1 1 X stoch0 tau0 symW specW
    (lexx 0) ler01 ptq (lexx 1) q_range.
End Instances.
