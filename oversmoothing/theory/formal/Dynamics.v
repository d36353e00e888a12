(* The layer X' = X + A X W as I + H (x) A on vec X, H = W^T, and how fast it moves: growth of the
   quotient, of the pi-mean, and of the component along a left eigenvector.  No axioms.          *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From mathcomp.real_closed Require Import mxtens.
Require Import T1_blocks T1a_spectrum Powers.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Vec.
Variable F : fieldType.
(* Columns one below the other. *)
Definition vec n d (X : 'M[F]_(n, d)) : 'cV[F]_(d * n) :=
  \col_k X (mxtens_unindex k).2 (mxtens_unindex k).1.
Lemma vecE n d (X : 'M[F]_(n, d)) i j : vec X (mxtens_index (j, i)) 0 = X i j.
Proof. by rewrite mxE mxtens_indexK. Qed.
Lemma vec_inj n d : injective (@vec n d).
Proof. by move=> X Y E; apply/matrixP=> i j; rewrite -(vecE X) E vecE. Qed.
Lemma vecD n d (X Y : 'M[F]_(n, d)) : vec (X + Y) = vec X + vec Y.
Proof. by apply/matrixP=> k l; rewrite !mxE. Qed.
Lemma vec_mul n d (A : 'M[F]_n) (X : 'M[F]_(n, d)) (W : 'M[F]_d) :
  vec (A *m X *m W) = (W^T *t A) *m vec X.
Proof.
apply/matrixP=> k z; rewrite ord1 {z}; case: (mxtens_indexP k) => j i; rewrite vecE !mxE.
rewrite [RHS](reindex (@mxtens_index d n)) /=; last first.
  by exists (@mxtens_unindex d n) => l _; rewrite ?mxtens_indexK ?mxtens_unindexK.
under eq_bigr do rewrite mxE mulr_suml.
rewrite pair_bigA /=; apply: eq_bigr => [[l i']] _ /=.
by rewrite tensmxE vecE mxE mulrC mulrA.
Qed.

(* T1a (1) *)
Theorem vec_layer n d (A : 'M[F]_n) (X : 'M[F]_(n, d)) (W : 'M[F]_d) :
  vec (X + A *m X *m W) = (1%:M + W^T *t A) *m vec X.
Proof. by rewrite vecD vec_mul mulmxDl mul1mx. Qed.

(* T1a (3) *)
Theorem product_eigenvector n d (A : 'M[F]_n) (H : 'M[F]_d) (v : 'cV[F]_n) (u : 'cV[F]_d) a h :
  A *m v = a *: v -> H *m u = h *: u ->
  v *m u^T + A *m (v *m u^T) *m H^T = (1 + h * a) *: (v *m u^T) /\
  (1%:M + H *t A) *m vec (v *m u^T) = (1 + h * a) *: vec (v *m u^T) /\
  (v != 0 -> u != 0 -> vec (v *m u^T) != 0).
Proof.
move=> vA uH; have E : v *m u^T + A *m (v *m u^T) *m H^T = (1 + h * a) *: (v *m u^T).
  rewrite mulmxA vA -!scalemxAl -mulmxA -trmx_mul uH linearZ /= -scalemxAr scalerA.
  by rewrite scalerDl scale1r mulrC.
split=> //; split.
  have := vec_layer A (v *m u^T) H^T; rewrite trmxK => <-; rewrite E.
  by apply/matrixP=> k l; rewrite !mxE.
move=> v0 u0; apply: contraNneq v0 => Z; apply/eqP/matrixP=> i z; rewrite ord1 mxE {z}.
have /rV0Pn[j uj] : u^T != 0 by rewrite -(inj_eq (@trmx_inj _ _ _)) trmxK trmx0.
have := vecE (v *m u^T) i j; rewrite Z !mxE big_ord1 => /esym/eqP.
by rewrite mulf_eq0 (negbTE uj) orbF => /eqP.
Qed.

(* T1a (4): A and H defective, an eigenvector of I + H (x) A that is no product. *)
Theorem eigenvector_no_product : exists (A H X : 'M[F]_2),
  [/\ A != 0, A *m A = 0, H != 0, H *m H = 0 &
   (1%:M + H *t A) *m vec X = vec X /\ vec X != 0 /\
   forall (v u : 'cV[F]_2), X != v *m u^T].
Proof.
pose E : 'M[F]_2 := \matrix_(i, j) ((i == 0) && (j == 1))%:R.
have EE : E *m E = 0.
  by apply/matrixP=> i j; rewrite !mxE big1 // => k _; rewrite !mxE; case: k => [[|[|//]] p] /=;
    rewrite ?andbF ?mul0r ?mulr0.
have En0 : E != 0.
  by apply/eqP => /matrixP/(_ 0 1)/eqP; rewrite !mxE /= oner_eq0.
exists E, E^T, 1%:M; split=> //.
- by rewrite -(inj_eq (@trmx_inj _ _ _)) trmxK trmx0.
- by rewrite -trmx_mul EE trmx0.
split.
  by have := vec_layer E 1%:M E; rewrite mulmx1 EE addr0 => <-.
split.
  apply/eqP => Z; have := oner_neq0 F.
  by have := vecE (1%:M : 'M[F]_2) 0 0; rewrite Z !mxE eqxx mulr1n => <-; rewrite eqxx.
move=> v u; apply/eqP => Z.
have R i j : (1%:M : 'M[F]_2) i j = v i 0 * u j 0 by rewrite Z mxE big_ord1 mxE.
have := R 0 1; have := R 1 1; have := R 0 0; rewrite !mxE /= => a b /esym/eqP.
rewrite mulf_eq0 => /orP[] /eqP c; [move: a | move: b]; rewrite c ?mul0r ?mulr0 => /eqP;
  by rewrite oner_eq0.
Qed.
End Vec.

Section Growth.
Variable C : numClosedFieldType.

(* L layers with one A and one W. *)
Definition evolve n d (A : 'M[C]_n) (W : 'M[C]_d) L (X : 'M[C]_(n, d)) :=
  iter L (fun Y => Y + A *m Y *m W) X.

Lemma vec_evolve n d (A : 'M[C]_n) (W : 'M[C]_d) L (X : 'M[C]_(n, d)) :
  vec (evolve A W L X) = iter L (mulmx (1%:M + W^T *t A)) (vec X).
Proof. by elim: L => //= L IH; rewrite vec_layer IH. Qed.

Lemma norm1_vec n d (X : 'M[C]_(n, d)) : norm1 (vec X) = norm1 X.
Proof.
rewrite /norm1 (reindex (@mxtens_index d n)) /=; last first.
  by exists (@mxtens_unindex d n) => l _; rewrite ?mxtens_indexK ?mxtens_unindexK.
rewrite [RHS]exchange_big [RHS]pair_bigA /=; apply: eq_bigr => [[j i]] _.
by rewrite big_ord1 vecE.
Qed.

(* The roots of the characteristic polynomial of I + H (x) B. *)
Lemma kron_root n d (H : 'M[C]_d) (B : 'M[C]_n) x : root (char_poly (1%:M + H *t B)) x ->
  exists h a, [/\ root (char_poly H) h, root (char_poly B) a & x = 1 + h * a].
Proof.
have [h [a [EH EB ->]]] := spectrum_with_multiplicity H B.
rewrite /root horner_prod => /prodf_eq0[j _]; rewrite horner_prod => /prodf_eq0[i _].
rewrite hornerD hornerN hornerX hornerC subr_eq0 => /eqP->; exists (h j), (a i); split=> //.
- by rewrite EH /root horner_prod (bigD1 j) //= hornerD hornerN hornerX hornerC subrr mul0r.
- by rewrite EB /root horner_prod (bigD1 i) //= hornerD hornerN hornerX hornerC subrr mul0r.
Qed.

Theorem growth n d (B : 'M[C]_n) (W : 'M[C]_d) (q : C) : 0 <= q ->
  (forall h a, root (char_poly W^T) h -> root (char_poly B) a -> `|1 + h * a| < q) ->
  exists2 K, 0 <= K & forall L X, norm1 (evolve B W L X) <= K * q ^+ L * norm1 X.
Proof.
move=> q0 below; have [|K K0 HK] := @power_bound _ _ (1%:M + W^T *t B) q q0.
  by move=> x /kron_root[h [a [Hh Ha ->]]]; exact: below.
by exists K => // L X; rewrite -(norm1_vec (evolve B W L X)) -(norm1_vec X) vec_evolve.
Qed.

(* Strictly below r means geometrically below r. *)
Theorem growth_below n d (B : 'M[C]_n) (W : 'M[C]_d) (r : C) : 0 < r ->
  (forall h a, root (char_poly W^T) h -> root (char_poly B) a -> `|1 + h * a| < r) ->
  exists2 q, 0 <= q < r & exists2 K, 0 <= K &
  forall L X, norm1 (evolve B W L X) <= K * q ^+ L * norm1 X.
Proof.
move=> r0 below; have [|q /andP[q0 qr] Hq] := @gap _ _ (1%:M + W^T *t B) r r0.
  by move=> x /kron_root[h [a [Hh Ha ->]]]; exact: below.
exists q; first by rewrite q0.
have [K K0 HK] := power_bound q0 Hq.
by exists K => // L X; rewrite -(norm1_vec (evolve B W L X)) -(norm1_vec X) vec_evolve.
Qed.

(* Along left eigenvectors w of A and z of H the state moves by 1 + h a. *)
Theorem along n d (A : 'M[C]_n) (W : 'M[C]_d) (w : 'rV[C]_n) (z : 'cV[C]_d) a h L X :
  w *m A = a *: w -> W *m z = h *: z ->
  w *m evolve A W L X *m z = (1 + h * a) ^+ L *: (w *m X *m z).
Proof.
move=> wA Wz; elim: L => [|L IH]; first by rewrite expr0 scale1r.
set Y := evolve A W L X in IH *.
have -> : evolve A W L.+1 X = Y + A *m Y *m W by [].
have E : w *m (A *m Y *m W) *m z = (h * a) *: (w *m Y *m z).
  have -> : w *m (A *m Y *m W) *m z = w *m A *m Y *m (W *m z) by rewrite !mulmxA.
  by rewrite wA Wz -!scalemxAl -scalemxAr scalerA mulrC.
by rewrite mulmxDr mulmxDl E IH scalerA -scalerDl exprS; congr (_ *: _); ring.
Qed.
End Growth.
