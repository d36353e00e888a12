(* T1d (1): every row-stochastic A has a left eigenvector pi >= 0 for 1 of sum 1; a single one iff A
   has one closed class, that is, iff no two closed sets of tokens are disjoint; pi > 0 if A > 0.  No axioms. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Stationary.
Variables (R : realFieldType) (n : nat).
Implicit Types (A : 'M[R]_n.+1) (p v : 'I_n.+1 -> R).
Definition row_stochastic A := (forall i j, 0 <= A i j) /\ forall i, \sum_j A i j = 1.
Definition fixed A v := forall j, \sum_i v i * A i j = v j.
Definition stationary A p := [/\ forall i, 0 <= p i, \sum_i p i = 1 & fixed A p].

(* |v| is fixed where v is. *)
Lemma fixed_norm A v : row_stochastic A -> fixed A v -> fixed A (fun i => `|v i|).
Proof.
move=> [A0 A1] fv; have le j : 0 <= \sum_i `|v i| * A i j - `|v j|.
  rewrite subr_ge0 -{1}(fv j); apply: le_trans (ler_norm_sum _ _ _) _.
  by apply: ler_sum => i _; rewrite normrM (ger0_norm (A0 i j)).
have Z : \sum_j (\sum_i `|v i| * A i j - `|v j|) = 0.
  rewrite sumrB exchange_big /= (eq_bigr (fun i => `|v i|)) ?subrr // => i _.
  by rewrite -mulr_sumr A1 mulr1.
move=> j; apply/eqP; rewrite -subr_eq0; apply/eqP.
by apply: (psumr_eq0P (fun j _ => le j) Z).
Qed.

Lemma normalised A v : (forall i, 0 <= v i) -> fixed A v -> (exists i, v i != 0) ->
  stationary A (fun i => v i / \sum_k v k).
Proof.
move=> v0 fv [k vk]; have S : 0 < \sum_k v k.
  rewrite (bigD1 k) //= ltr_paddr ?sumr_ge0 // lt_def vk //=.
split=> [i||j].
- by rewrite divr_ge0 // ltW.
- by rewrite -mulr_suml mulfV // gt_eqF.
- by rewrite -(fv j) mulr_suml; apply: eq_bigr => i _; rewrite mulrAC.
Qed.

Theorem stationary_exists A : row_stochastic A -> exists p, stationary A p.
Proof.
move=> st; have [A0 A1] := st.
have s : A - 1%:M \notin unitmx.
  apply/negP => u; have := mulKmx u (const_mx 1 : 'cV[R]_n.+1).
  have -> : (A - 1%:M) *m const_mx 1 = 0 :> 'cV[R]_n.+1.
    rewrite mulmxBl mul1mx; apply/matrixP=> i j; rewrite !mxE (eq_bigr (A i)) ?A1 ?subrr // => k _.
    by rewrite mxE mulr1.
  by rewrite mulmx0 => /matrixP/(_ 0 0)/eqP; rewrite !mxE eq_sym oner_eq0.
have [v vk v0] : exists2 v : 'rV[R]_n.+1, (v <= kermx (A - 1%:M))%MS & v != 0.
  by apply/rowV0Pn; rewrite kermx_eq0 row_free_unit.
have vA : v *m A = v by apply/eqP; rewrite -subr_eq0 -{2}[v]mulmx1 -mulmxBr; apply/eqP/sub_kermxP.
have fv : fixed A (v 0) by move=> j; rewrite -{2}vA mxE.
exists (fun i => `|v 0 i| / \sum_k `|v 0 k|); apply: normalised (fixed_norm st fv) _ => //.
by have /rV0Pn[j vj] := v0; exists j; rewrite normr_eq0.
Qed.

Theorem stationary_positive A p : (forall i j, 0 < A i j) -> stationary A p -> forall j, 0 < p j.
Proof.
move=> pos [p0 p1 fp] j; rewrite -(fp j).
have t0 i : 0 <= p i * A i j by rewrite mulr_ge0 // ltW.
rewrite lt_def sumr_ge0 // andbT; apply/eqP => Z.
have z i : p i = 0.
  have /eqP : p i * A i j = 0 by apply: (psumr_eq0P (fun i _ => t0 i) Z).
  by rewrite mulf_eq0 (gt_eqF (pos i j)) orbF => /eqP.
by move/eqP: p1; rewrite big1 ?[_ == 1]eq_sym ?oner_eq0.
Qed.

(* A set of tokens that attend only within. *)
Definition closed A (S : {set 'I_n.+1}) := S != set0 /\ forall i j, i \in S -> j \notin S -> A i j = 0.
Definition one_closed_class A := forall S T, closed A S -> closed A T -> ~~ [disjoint S & T].

(* A closed set carries a stationary pi. *)
Lemma carried A S : row_stochastic A -> closed A S -> exists2 p, stationary A p & forall j, j \notin S -> p j = 0.
Proof.
move=> [A0 A1] [/set0Pn[s sS] cl].
pose A' : 'M[R]_n.+1 := \matrix_(i, j) (if i \in S then A i j else A s j).
have st' : row_stochastic A'.
  split=> [i j|i]; first by rewrite mxE; case: ifP.
  by rewrite (eq_bigr (A (if i \in S then i else s))) // => j _; rewrite mxE; case: ifP.
have [p [p0 p1 fp]] := stationary_exists st'.
have out j : j \notin S -> p j = 0.
  move=> jS; rewrite -(fp j) big1 // => i _; rewrite mxE.
  by case: ifP => [iS|_]; rewrite cl ?mulr0.
exists p => //; split=> // j; rewrite -[RHS](fp j); apply: eq_bigr => i _; rewrite mxE.
by case: ifPn => // /out->; rewrite !mul0r.
Qed.

Lemma support_closed A p : row_stochastic A -> (forall i, 0 <= p i) -> fixed A p ->
  (exists i, p i != 0) -> closed A [set i | p i != 0].
Proof.
move=> [A0 _] p0 fp [k pk]; split; first by apply/set0Pn; exists k; rewrite inE.
move=> i j; rewrite !inE negbK => pi /eqP pj.
have t0 l : 0 <= p l * A l j by rewrite mulr_ge0.
have Z : \sum_l p l * A l j = 0 by rewrite fp.
have /eqP : p i * A i j = 0 by apply: (psumr_eq0P (fun l _ => t0 l) Z).
by rewrite mulf_eq0 (negbTE pi) => /eqP.
Qed.

Theorem stationary_unique A : row_stochastic A ->
  ((forall p q, stationary A p -> stationary A q -> p =1 q) <-> one_closed_class A).
Proof.
move=> st; split=> [uniq S T cS cT|one p q [p0 p1 fp] [q0 q1 fq]].
  have [p sp outp] := carried st cS; have [q sq outq] := carried st cT.
  apply/negP => dis; have [_ p1 _] := sp.
  move/eqP: p1; rewrite big1 ?[_ == 1]eq_sym ?oner_eq0 // => i _.
  have [iS|] := boolP (i \in S); last exact: outp.
  by rewrite (uniq _ _ sp sq) outq // (disjointFr dis iS).
pose v i := p i - q i; have fv : fixed A v.
  by move=> j; rewrite /v -(fp j) -(fq j) -sumrB; apply: eq_bigr => i _; rewrite mulrBl.
have fn := fixed_norm st fv.
have sum0 : \sum_i v i = 0 by rewrite sumrB p1 q1 subrr.
pose w (s : R) i := `|v i| + s * v i.
have fw s : fixed A (w s).
  move=> j; rewrite /w -(fn j) -(fv j) mulr_sumr -big_split; apply: eq_bigr => i _ /=; ring.
have w0 s i : `|s| = 1 -> 0 <= w s i.
  move=> s1; rewrite /w addrC -ler_subl_addr sub0r ler_oppl.
  by apply: le_trans (ler_norm _) _; rewrite normrN normrM s1 mul1r.
case: (boolP [exists i, v i != 0]) => [/existsP[k vk]|/existsPn Z]; last first.
  by move=> i; apply/eqP; rewrite -subr_eq0; have := Z i; rewrite negbK.
have ex s : `|s| = 1 -> exists i, w s i != 0.
  move=> s1; apply/existsP; apply: contraT => /existsPn none.
  have : \sum_i w s i = 0 by rewrite big1 // => i _; apply/eqP; have := none i; rewrite negbK.
  rewrite big_split /= -mulr_sumr sum0 mulr0 addr0 => N.
  have /eqP : `|v k| = 0 by apply: (psumr_eq0P (fun i _ => normr_ge0 (v i)) N).
  by rewrite normr_eq0 (negbTE vk).
have n1 : `|1 : R| = 1 by exact: normr1.
have nN : `|- 1 : R| = 1 by rewrite normrN normr1.
have := one _ _ (support_closed st (fun i => w0 1 i n1) (fw 1) (ex 1 n1))
  (support_closed st (fun i => w0 (-1) i nN) (fw (-1)) (ex (-1) nN)).
case/pred0Pn => i /=; rewrite !inE /w mul1r mulN1r => /andP[].
have [le|lt] := ler0P (v i); first by rewrite addNr eqxx.
by rewrite subrr eqxx.
Qed.
End Stationary.
