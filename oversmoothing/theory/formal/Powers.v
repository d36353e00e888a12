(* Powers of a square matrix over any algebraically closed field with a norm, as the complex numbers:
   ||M^L|| <= K q^L for every q above the spectral radius, defective M included, by a norm whose
   weights make the part of a triangular M off the diagonal small.  No axioms.                    *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
Require Import T1_blocks T1a_spectrum.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Real.
Variable C : numClosedFieldType.
Implicit Types (q r x y : C).

(* Finitely many positive numbers have a positive lower bound. *)
Lemma lower_bound (I : finType) (F : I -> C) : (forall i, 0 < F i) ->
  exists2 x, 0 < x & forall i, x <= F i.
Proof.
move=> F0; have S0 : 0 < 1 + \sum_i (F i)^-1.
  by rewrite ltr_paddr ?ltr01 // sumr_ge0 // => i _; rewrite invr_ge0 ltW.
exists (1 + \sum_i (F i)^-1)^-1; first by rewrite invr_gt0.
move=> i; rewrite -[X in _ <= X]invrK lef_pinv ?posrE ?invr_gt0 //.
rewrite (bigD1 i) //= addrCA ler_addl addr_ge0 ?ler01 // sumr_ge0 // => k _.
by rewrite invr_ge0 ltW.
Qed.

(* Numbers smaller than every 1/n are 0: the reals, and the algebraic numbers. *)
Definition archimedean := forall x, exists n : nat, `|x| < n%:R.

Lemma bernoulli x L : 0 <= x -> 1 + L%:R * x <= (1 + x) ^+ L.
Proof.
move=> x0; elim: L => [|L IH]; first by rewrite mul0r addr0 expr0.
have p : 0 < 1 + x by rewrite ltr_paddr ?ltr01.
rewrite exprS; apply: le_trans (_ : (1 + x) * (1 + L%:R * x) <= _); last by rewrite ler_pmul2l.
have -> : (1 + x) * (1 + L%:R * x) = 1 + (L%:R + 1) * x + L%:R * x ^+ 2 by ring.
by rewrite -addn1 natrD ler_addl mulr_ge0 ?ler0n ?exprn_ge0.
Qed.

Lemma smaller_power q r : archimedean -> 0 <= q -> q < r ->
  forall eps, 0 < eps -> exists N, forall L, (N <= L)%N -> q ^+ L <= eps * r ^+ L.
Proof.
move=> arch q0 qr eps e0; have r0 : 0 < r by exact: le_lt_trans qr.
have [E|qn] := eqVneq q 0.
  exists 1%N => L L1; rewrite E expr0n gtn_eqF //=.
  by rewrite mulr_ge0 ?exprn_ge0 // ltW.
have qp : 0 < q by rewrite lt_def qn.
pose u := r / q - 1; have u0 : 0 < u by rewrite subr_gt0 ltr_pdivl_mulr // mul1r.
have [N HN] := arch (eps^-1 / u); exists N => L NL.
have qL : 0 < q ^+ L by rewrite exprn_gt0.
rewrite -ler_pdivr_mull // -ler_pdivl_mulr // -expr_div_n.
have -> : r / q = 1 + u by rewrite /u addrC subrK.
apply: le_trans (bernoulli L (ltW u0)).
rewrite ler_paddl ?ler01 // -ler_pdivr_mulr //.
have e1 : 0 <= eps^-1 / u by rewrite divr_ge0 ?invr_ge0 ?ltW.
move: HN; rewrite (ger0_norm e1) => /ltW HN; apply: le_trans HN _.
by rewrite ler_nat.
Qed.
End Real.

Section Powers.
Variable C : numClosedFieldType.

Definition norm1 m d (v : 'M[C]_(m, d)) : C := \sum_i \sum_j `|v i j|.
Lemma norm1_ge0 m d (v : 'M[C]_(m, d)) : 0 <= norm1 v.
Proof. by rewrite /norm1 !sumr_ge0 // => i _; rewrite sumr_ge0. Qed.
Lemma norm1_entry m d (v : 'M[C]_(m, d)) i j : `|v i j| <= norm1 v.
Proof.
rewrite /norm1 (bigD1 i) //= (bigD1 j) //= -addrA ler_addl addr_ge0 ?sumr_ge0 // => k _.
by rewrite sumr_ge0.
Qed.
Lemma norm1_mul m k d (A : 'M[C]_(m, k)) (v : 'M[C]_(k, d)) : norm1 (A *m v) <= norm1 A * norm1 v.
Proof.
rewrite /norm1 mulr_suml; apply: ler_sum => i _.
apply: le_trans (_ : \sum_j \sum_l `|A i l| * `|v l j| <= _).
  apply: ler_sum => j _; rewrite mxE; apply: le_trans (ler_norm_sum _ _ _) _.
  by apply: ler_sum => l _; rewrite normrM.
rewrite exchange_big /= mulr_suml; apply: ler_sum => l _.
rewrite -mulr_sumr ler_wpmul2l //.
by rewrite [X in _ <= X](bigD1 l) //= ler_addl sumr_ge0 // => k' _; rewrite sumr_ge0.
Qed.

(* The eigenvalues of a triangular matrix are its diagonal. *)
Lemma root_trig m (T : 'M[C]_m) i : is_trig_mx T -> root (char_poly T) (T i i).
Proof.
move=> tr; rewrite char_poly_trig // /root horner_prod (bigD1 i) //=.
by rewrite hornerD hornerN hornerX hornerC subrr mul0r.
Qed.

Section Triangular.
Variables (m : nat) (T : 'M[C]_m) (q : C).
Hypotheses (tr : is_trig_mx T) (below : forall i, `|T i i| < q).

Definition weighted d (t : C) (v : 'M[C]_(m, d)) : C := \sum_(i < m) t ^+ i * \sum_j `|v i j|.

Lemma weighted_step : exists2 t : C, 0 < t <= 1 & forall d (v : 'M[C]_(m, d)),
  weighted t (T *m v) <= q * weighted t v.
Proof.
have [x x0 xq] : exists2 x, 0 < x & forall i, x <= q - `|T i i|.
  by apply: lower_bound => i; rewrite subr_gt0.
pose K := norm1 T; have K0 : 0 <= K by exact: norm1_ge0.
have D0 : 0 < K + 1 + x by rewrite ltr_paddl ?addr_ge0 ?ler01.
pose t : C := x / (K + 1 + x).
have t0 : 0 < t by rewrite divr_gt0.
have t1 : t <= 1 by rewrite ler_pdivr_mulr // mul1r ler_addr addr_ge0 ?ler01.
have tK : t * K <= x.
  rewrite /t -mulrA ler_pimulr ?(ltW x0) //.
  rewrite mulrC ler_pdivr_mulr // mul1r -addrA ler_addl addr_ge0 ?ler01 ?(ltW x0) //.
exists t; first by rewrite t0.
move=> d v; pose c k := \sum_j `|v k j|.
have c0 k : 0 <= c k by rewrite sumr_ge0.
apply: (@le_trans _ _ (\sum_(i < m) t ^+ i * \sum_k `|T i k| * c k)).
  apply: ler_sum => i _; rewrite ler_wpmul2l ?exprn_ge0 ?(ltW t0) //.
  apply: le_trans (_ : \sum_j \sum_k `|T i k| * `|v k j| <= _).
    apply: ler_sum => j _; rewrite mxE; apply: le_trans (ler_norm_sum _ _ _) _.
    by apply: ler_sum => k _; rewrite normrM.
  by rewrite exchange_big /=; apply: ler_sum => k _; rewrite -mulr_sumr.
have -> : \sum_(i < m) t ^+ i * (\sum_k `|T i k| * c k) =
          \sum_(k < m) c k * \sum_(i < m) t ^+ i * `|T i k|.
  under eq_bigr do rewrite mulr_sumr.
  rewrite exchange_big /=; apply: eq_bigr => k _; rewrite mulr_sumr; apply: eq_bigr => i _.
  by rewrite mulrA mulrC.
rewrite /weighted mulr_sumr; apply: ler_sum => k _.
have -> : q * (t ^+ k * \sum_j `|v k j|) = c k * (q * t ^+ k) by rewrite /c; ring.
rewrite ler_wpmul2l //.
rewrite (bigD1 k) //=; apply: le_trans (_ : t ^+ k * `|T k k| + t ^+ k * (t * K) <= _).
  rewrite ler_add2l; apply: le_trans (_ : \sum_(i | i != k) t ^+ k.+1 * `|T i k| <= _).
    apply: ler_sum => i ik; case: (ltngtP i k) => lt.
    - by move/is_trig_mxP: tr => ->; rewrite ?normr0 ?mulr0.
    - by rewrite ler_wpmul2r // ler_wiexpn2l ?(ltW t0).
    - by case/eqP: ik; apply: val_inj.
  rewrite -mulr_sumr exprSr -mulrA ler_wpmul2l ?exprn_ge0 ?(ltW t0) // ler_wpmul2l ?(ltW t0) //.
  apply: le_trans (_ : \sum_i `|T i k| <= _).
    by rewrite [X in _ <= X](bigD1 k) //= ler_addr.
  rewrite /K /norm1; apply: ler_sum => i _.
  by rewrite (bigD1 k) //= ler_addl sumr_ge0.
rewrite -mulrDr [X in _ <= X]mulrC ler_wpmul2l ?exprn_ge0 ?(ltW t0) //.
by rewrite -ler_subr_addl (le_trans tK).
Qed.

Lemma triangular_powers : 0 <= q ->
  exists2 K, 0 <= K & forall L d (v : 'M[C]_(m, d)), norm1 (iter L (mulmx T) v) <= K * q ^+ L * norm1 v.
Proof.
move=> q0; have [t /andP[t0 t1] step] := weighted_step.
have tm : 0 < t ^+ m by rewrite exprn_gt0.
exists (t ^+ m)^-1; first by rewrite invr_ge0 ltW.
move=> L d v.
have up (w : 'M[C]_(m, d)) : weighted t w <= norm1 w.
  apply: ler_sum => i _; rewrite ler_pimull ?sumr_ge0 //.
  by rewrite exprn_ile1 ?(ltW t0).
have down (w : 'M[C]_(m, d)) : t ^+ m * norm1 w <= weighted t w.
  rewrite mulr_sumr; apply: ler_sum => i _; rewrite ler_wpmul2r ?sumr_ge0 //.
  by rewrite ler_wiexpn2l ?(ltW t0) // ltnW.
rewrite -mulrA mulrC ler_pdivl_mulr // mulrC; apply: le_trans (down _) _.
apply: le_trans (_ : q ^+ L * weighted t v <= _); last by rewrite ler_wpmul2l ?exprn_ge0.
elim: L => [|L IH]; first by rewrite mul1r.
rewrite iterS; apply: le_trans (step _ _) _.
by rewrite exprS -mulrA ler_wpmul2l.
Qed.
End Triangular.

(* ||M^L V|| <= K q^L ||V||, all L and all V of any width, wherever q exceeds every eigenvalue. *)
Theorem power_bound m (M : 'M[C]_m) (q : C) : 0 <= q ->
  (forall a, root (char_poly M) a -> `|a| < q) ->
  exists2 K, 0 <= K & forall L d (V : 'M[C]_(m, d)), norm1 (iter L (mulmx M) V) <= K * q ^+ L * norm1 V.
Proof.
move=> q0 below; have [P [Q [PQ tr]]] := trigonal M.
have QP : Q *m P = 1%:M by exact: mulmx1C.
set T := P *m M *m Q in tr.
have [i|K K0 HK] := @triangular_powers _ T q tr _ q0.
  by apply: below; rewrite -(char_poly_sim M PQ) root_trig.
have E L d (V : 'M[C]_(m, d)) : iter L (mulmx M) V = Q *m iter L (mulmx T) (P *m V).
  elim: L => [|L IH]; first by rewrite /= mulmxA QP mul1mx.
  by rewrite !iterS IH /T !mulmxA QP mul1mx.
exists (norm1 Q * K * norm1 P); first by rewrite !mulr_ge0 ?norm1_ge0.
move=> L d V; rewrite E; apply: le_trans (norm1_mul _ _) _.
rewrite -!mulrA ler_wpmul2l ?norm1_ge0 //; apply: le_trans (HK _ _ _) _.
rewrite -!mulrA ler_wpmul2l // mulrCA ler_wpmul2l ?exprn_ge0 //.
exact: norm1_mul.
Qed.

(* Eigenvalues below r stay below some q < r. *)
Lemma gap m (M : 'M[C]_m) (r : C) : 0 < r -> (forall a, root (char_poly M) a -> `|a| < r) ->
  exists2 q, 0 <= q < r & forall a, root (char_poly M) a -> `|a| < q.
Proof.
move=> r0 below; have [P [Q [PQ tr]]] := trigonal M.
set T := P *m M *m Q in tr; have E : char_poly T = char_poly M by exact: char_poly_sim.
have [x x0 xr] : exists2 x, 0 < x & forall o : option 'I_m, x <= if o is Some i then r - `|T i i| else r.
  apply: lower_bound => -[i|] //; rewrite subr_gt0 below // -E root_trig //.
have h2 : 2%:R^-1 * x < x.
  by rewrite gtr_pmull // invf_lt1 ?ltr0n // ltr1n.
have h0 : 0 < 2%:R^-1 * x by rewrite mulr_gt0 ?invr_gt0 ?ltr0n.
exists (r - 2%:R^-1 * x).
  rewrite subr_ge0 (le_trans (ltW h2)) ?(xr None) //=.
  by rewrite ltr_subl_addr ltr_addl.
move=> a; rewrite -E char_poly_trig // /root horner_prod => /prodf_eq0[i _].
rewrite hornerD hornerN hornerX hornerC subr_eq0 => /eqP->.
rewrite ltr_subr_addl -ltr_subr_addr; exact: lt_le_trans h2 (xr (Some i)).
Qed.
End Powers.
