(* Limits of sequences of numbers and of matrices, by their entries.  No axioms. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
Require Import T1_blocks T1a_spectrum Powers Norms.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Numbers.
Variable K : numFieldType.
Implicit Types (f g : nat -> K) (x y eps : K).
Definition tends f x := forall eps, 0 < eps -> exists N, forall L, (N <= L)%N -> `|f L - x| <= eps.
(* Beyond every bound from some layer on. *)
Definition unbounded f := forall x, 0 < x -> exists N, forall L, (N <= L)%N -> x <= f L.

Lemma tends_const x : tends (fun=> x) x.
Proof. by move=> eps e0; exists 0%N => L _; rewrite subrr normr0 ltW. Qed.
Lemma tends_eq f g x : (forall L, f L = g L) -> tends f x -> tends g x.
Proof. by move=> E T eps /T[N HN]; exists N => L; rewrite -E; exact: HN. Qed.
Lemma tends_within f (k : nat -> K) x y : tends k 0 -> (forall L, `|f L - x| <= y * `|k L|) -> 0 <= y ->
  tends f x.
Proof.
move=> T le y0 eps e0; have D0 : 0 < y + 1 by rewrite ltr_paddl ?ltr01.
have [N HN] := T _ (divr_gt0 e0 D0); exists N => L /HN; rewrite subr0 => Hk.
apply: le_trans (le L) _; apply: le_trans (ler_wpmul2l y0 Hk) _.
rewrite mulrA ler_pdivr_mulr // mulrC ler_wpmul2l ?(ltW e0) //.
by rewrite ler_addl ler01.
Qed.
Lemma tendsD f g x y : tends f x -> tends g y -> tends (fun L => f L + g L) (x + y).
Proof.
move=> Tf Tg eps e0; have h0 : 0 < eps / 2%:R by rewrite divr_gt0 ?ltr0n.
have [[N HN] [M HM]] := (Tf _ h0, Tg _ h0); exists (maxn N M) => L.
rewrite geq_max => /andP[/HN Hf /HM Hg]; rewrite opprD addrACA.
apply: le_trans (ler_norm_add _ _) _; apply: le_trans (ler_add Hf Hg) _.
by rewrite -mulr2n -(mulr_natl (eps / _)) mulrC divfK ?pnatr_eq0.
Qed.
Lemma tendsN f x : tends f x -> tends (fun L => - f L) (- x).
Proof.
by move=> T eps /T[N HN]; exists N => L /HN; rewrite -opprD normrN.
Qed.
Lemma tendsZ c f x : tends f x -> tends (fun L => c * f L) (c * x).
Proof.
move=> T; apply: (@tends_within _ (fun L => f L - x) _ `|c|) => //.
  by move=> eps /T[N HN]; exists N => L /HN; rewrite subr0.
by move=> L; rewrite -mulrBr normrM.
Qed.
Lemma tendsM f g x y : tends f x -> tends g y -> tends (fun L => f L * g L) (x * y).
Proof.
move=> Tf Tg eps e0; pose k := `|x| + `|y| + 1.
have k0 : 0 < k by rewrite ltr_paddl ?ltr01 // addr_ge0.
have k10 : 0 < k + 1 by rewrite addr_gt0 ?ltr01.
pose t := eps / (k + 1) / (eps + 1); have e10 : 0 < eps + 1 by rewrite addr_gt0 ?ltr01.
have t0 : 0 < t by rewrite !divr_gt0.
have [[N HN] [M HM]] := (Tf _ t0, Tg _ t0); exists (maxn N M) => L.
rewrite geq_max => /andP[/HN Hf /HM Hg].
have -> : f L * g L - x * y = (f L - x) * (g L - y) + (x * (g L - y) + y * (f L - x)) by ring.
apply: le_trans (ler_norm_add _ _) _; apply: le_trans (ler_add (lexx _) (ler_norm_add _ _)) _.
rewrite !normrM; apply: (@le_trans _ _ (t * t + (`|x| * t + `|y| * t))).
  apply: ler_add; first by apply: ler_pmul.
  by apply: ler_add; rewrite ler_wpmul2l.
have t1 : t <= 1.
  rewrite /t mulrAC; apply: mulr_ile1; rewrite ?invr_ge0 ?divr_ge0 ?(ltW e0) ?(ltW e10) ?(ltW k10) //.
    by rewrite ler_pdivr_mulr // mul1r ler_addl ler01.
  by rewrite invf_le1 // ler_addr ltW.
apply: (@le_trans _ _ (t * 1 + (`|x| * t + `|y| * t))).
  by rewrite ler_add2r ler_wpmul2l // ltW.
have -> : t * 1 + (`|x| * t + `|y| * t) = t * k by rewrite /k; ring.
have -> : t * k = eps * (k / (k + 1) / (eps + 1)) by rewrite /t; field; rewrite !gt_eqF.
apply: ler_pimulr (ltW e0) _; apply: mulr_ile1; rewrite ?invr_ge0 ?divr_ge0 ?(ltW e10) ?(ltW k0) ?(ltW k10) //.
  by rewrite ler_pdivr_mulr // mul1r ler_addl ler01.
by rewrite invf_le1 // ler_addr ltW.
Qed.
Lemma tends_below f x : tends f x -> x != 0 -> exists N, forall L, (N <= L)%N -> `|x| / 2%:R <= `|f L|.
Proof.
move=> T x0; have h0 : 0 < `|x| / 2%:R by rewrite divr_gt0 ?ltr0n ?normr_gt0.
have [N HN] := T _ h0; exists N => L /HN; rewrite distrC => H.
have := ler_norm_add (x - f L) (f L); rewrite subrK => /le_trans/(_ (ler_add H (lexx _))).
rewrite -ler_subl_addl; apply: le_trans; rewrite le_eqVlt; apply/orP; left; apply/eqP.
by field.
Qed.
Lemma tendsV f x : tends f x -> x != 0 -> tends (fun L => (f L)^-1) x^-1.
Proof.
move=> T x0 eps e0; have [M HM] := tends_below T x0; have xp : 0 < `|x| by rewrite normr_gt0.
have t0 : 0 < eps * (`|x| ^+ 2 / 2%:R) by rewrite mulr_gt0 ?divr_gt0 ?exprn_gt0 ?ltr0n.
have [N HN] := T _ t0; exists (maxn M N) => L; rewrite geq_max => /andP[/HM low /HN H].
have fp : 0 < `|f L| by apply: lt_le_trans low; rewrite divr_gt0 ?ltr0n.
have fn : f L != 0 by rewrite -normr_gt0.
have -> : (f L)^-1 - x^-1 = (x - f L) / (f L * x) by field; rewrite fn x0.
rewrite normrM normfV normrM distrC ler_pdivr_mulr ?mulr_gt0 //; apply: le_trans H _.
rewrite ler_wpmul2l ?(ltW e0) // expr2 mulrAC ler_wpmul2r // ltW //.
Qed.
Lemma tends_norm f x : tends f x -> tends (fun L => `|f L|) `|x|.
Proof. by move=> T eps /T[N HN]; exists N => L /HN; apply: le_trans; exact: ler_dist_dist. Qed.
Lemma tends_sum (I : Type) (s : seq I) (P : pred I) (f : I -> nat -> K) (x : I -> K) :
  (forall i, P i -> tends (f i) (x i)) -> tends (fun L => \sum_(i <- s | P i) f i L) (\sum_(i <- s | P i) x i).
Proof.
move=> T; elim: s => [|i s IH].
  by rewrite big_nil; apply: tends_eq (tends_const 0) => L; rewrite big_nil.
rewrite big_cons; case: ifP => Pi.
  by apply: tends_eq (tendsD (T i Pi) IH) => L; rewrite big_cons Pi.
by apply: tends_eq IH => L; rewrite big_cons Pi.
Qed.
End Numbers.

Section Matrices.
Variable K : numFieldType.
Definition tendsm m d (X : nat -> 'M[K]_(m, d)) (Y : 'M[K]_(m, d)) := forall i j, tends (fun L => X L i j) (Y i j).
Lemma tendsm_const m d (Y : 'M[K]_(m, d)) : tendsm (fun=> Y) Y.
Proof. by move=> i j; exact: tends_const. Qed.
Lemma tendsm_eq m d (X X' : nat -> 'M[K]_(m, d)) (Y : 'M_(m, d)) : (forall L, X L = X' L) -> tendsm X Y -> tendsm X' Y.
Proof. by move=> E T i j; apply: tends_eq (T i j) => L; rewrite E. Qed.
Lemma tendsmM m k d (X : nat -> 'M[K]_(m, k)) (X' : nat -> 'M[K]_(k, d)) (Y : 'M_(m, k)) (Y' : 'M_(k, d)) : tendsm X Y ->
  tendsm X' Y' -> tendsm (fun L => X L *m X' L) (Y *m Y').
Proof.
move=> T T' i j; rewrite mxE; pose f l (L : nat) := X L i l * X' L l j.
apply: (@tends_eq _ (fun L => \sum_l f l L)) => [L|]; first by rewrite mxE.
by apply: tends_sum => l _; apply: tendsM.
Qed.
End Matrices.

Section Closed.
Variable C : numClosedFieldType.
Lemma tends_conj (f : nat -> C) x : tends f x -> tends (fun L => (f L)^*) x^*.
Proof. by move=> T eps /T[N HN]; exists N => L /HN; rewrite -rmorphB norm_conjC. Qed.
Lemma tends_norm1 m d (X : nat -> 'M[C]_(m, d)) Y : tendsm X Y -> tends (fun L => norm1 (X L - Y)) 0.
Proof.
move=> T; pose f i j (L : nat) := `|X L i j - Y i j|.
have -> : (0 : C) = \sum_(i < m) \sum_(j < d) 0 by rewrite big1 // => i _; rewrite big1.
apply: (@tends_eq _ (fun L => \sum_i \sum_j f i j L)) => [L|].
  by apply: eq_bigr => i _; apply: eq_bigr => j _; rewrite !mxE.
apply: tends_sum => i _; apply: tends_sum => j _; rewrite -[0](normr0 C) -(subrr (Y i j)).
by apply: tends_norm; apply: tendsD (T i j) (tends_const _).
Qed.
Lemma tendsm_normF m d (X : nat -> 'M[C]_(m, d)) Y : tendsm X Y -> tends (fun L => normF (X L)) (normF Y).
Proof.
move=> T; have T0 := tends_norm1 T.
move=> eps /T0[N HN]; exists N => L /HN; rewrite subr0 ger0_norm ?norm1_ge0 //; apply: le_trans.
rewrite real_ler_norml; last by rewrite rpredB // ger0_real ?normF_ge0.
apply/andP; split; first by rewrite -ler_opp2 opprK opprB ler_subl_addl -norm1N opprB normF_tri.
by rewrite ler_subl_addl normF_tri.
Qed.
Lemma tendsm_norm1 m d (X : nat -> 'M[C]_(m, d)) Y :
  (forall eps, 0 < eps -> exists N, forall L, (N <= L)%N -> norm1 (X L - Y) <= eps) -> tendsm X Y.
Proof.
move=> T i j eps /T[N HN]; exists N => L /HN; apply: le_trans.
by have := norm1_entry (X L - Y) i j; rewrite !mxE.
Qed.
Lemma tends_cosine d (x y : nat -> 'rV[C]_d) x0 y0 : tendsm x x0 -> tendsm y y0 ->
  normF x0 != 0 -> normF y0 != 0 -> tends (fun L => cosine (x L) (y L)) (cosine x0 y0).
Proof.
move=> Tx Ty nx ny; apply: tendsM.
  pose f j (L : nat) := x L 0 j * (y L 0 j)^*.
  apply: (@tends_eq _ (fun L => \sum_j f j L)) => //; apply: tends_sum => j _.
  by apply: tendsM => //; apply: tends_conj.
apply: tendsV; last by rewrite mulf_neq0.
by apply: tendsM; apply: tendsm_normF.
Qed.
End Closed.
