(* T2b, T2c, T2d: the verdict for real spectra, over finite lists of eigenvalues of any length.   *)
From Coq Require Import Reals Lra List.
Import ListNotations.
Open Scope R_scope.

(* Signs of products. *)
Lemma pos_l x y : 0 < x -> (0 < x * y <-> 0 < y).
Proof.
  intro X. split; intro H.
  - apply (Rmult_lt_reg_l x); lra.
  - apply Rmult_lt_0_compat; assumption.
Qed.
Lemma neg_l x y : x < 0 -> (0 < x * y <-> y < 0).
Proof.
  intro X. assert (E : x * y = (- x) * (- y)) by ring. rewrite E, (pos_l (- x)) by lra. lra.
Qed.
Lemma pos_le x y : 0 < x -> (0 <= x * y <-> 0 <= y).
Proof.
  intro X. split; intro H.
  - apply (Rmult_le_reg_l x); lra.
  - apply Rmult_le_pos; lra.
Qed.
Lemma neg_le x y : x < 0 -> (0 <= x * y <-> y <= 0).
Proof.
  intro X. assert (E : x * y = (- x) * (- y)) by ring. rewrite E, (pos_le (- x)) by lra. lra.
Qed.

Lemma Rabs_le_inv x y : Rabs x <= y -> - y <= x <= y.
Proof. intro H. pose proof (Rle_abs x). pose proof (Rle_abs (- x)). rewrite Rabs_Ropp in *. lra. Qed.

(* |x| against |y|, by (y - x)(y + x) = y^2 - x^2. *)
Lemma abs_lt x y : Rabs x < Rabs y <-> 0 < (y - x) * (y + x).
Proof.
  replace ((y - x) * (y + x)) with (Rsqr y - Rsqr x) by (unfold Rsqr; ring).
  split; intro H.
  - apply Rsqr_lt_abs_1 in H. lra.
  - apply Rsqr_lt_abs_0. lra.
Qed.
Lemma abs_le x y : Rabs x <= Rabs y <-> 0 <= (y - x) * (y + x).
Proof.
  replace ((y - x) * (y + x)) with (Rsqr y - Rsqr x) by (unfold Rsqr; ring).
  split; intro H.
  - apply Rsqr_le_abs_1 in H. lra.
  - apply Rsqr_le_abs_0. lra.
Qed.

(* The differences of squares of one corner and one end. *)
Definition from (u v : R) := (v - u) * (2 + u + v).
Lemma corner_lt u v : Rabs (1 + u) < Rabs (1 + v) <-> 0 < from u v.
Proof. rewrite abs_lt. unfold from. replace (1 + v - (1 + u)) with (v - u) by ring.
  replace (1 + v + (1 + u)) with (2 + u + v) by ring. reflexivity. Qed.
Lemma corner_le u v : Rabs (1 + u) <= Rabs (1 + v) <-> 0 <= from u v.
Proof. rewrite abs_le. unfold from. replace (1 + v - (1 + u)) with (v - u) by ring.
  replace (1 + v + (1 + u)) with (2 + u + v) by ring. reflexivity. Qed.
Lemma own h a : from (h * a) h = (h * (1 - a)) * (2 + h * (1 + a)).
Proof. unfold from; ring. Qed.

(* T2b *)
Definition smooths h a := Rabs (1 + h * a) < Rabs (1 + h).
Definition ties h a := Rabs (1 + h * a) = Rabs (1 + h).
Definition keeps h a := Rabs (1 + h) < Rabs (1 + h * a).

Theorem identity h a : (1 + h) ^ 2 - (1 + h * a) ^ 2 = h * (1 - a) * (2 + h * (1 + a)).
Proof. ring. Qed.

Lemma below_threshold h a : -1 < a -> (h < -2 / (1 + a) <-> 2 + h * (1 + a) < 0).
Proof.
  intro A. split; intro H.
  - apply (Rmult_lt_compat_r (1 + a)) in H; [| lra].
    replace (-2 / (1 + a) * (1 + a)) with (-2) in H by (field; lra). lra.
  - apply (Rmult_lt_reg_r (1 + a)); [lra |].
    replace (-2 / (1 + a) * (1 + a)) with (-2) by (field; lra). lra.
Qed.
Lemma at_threshold h a : -1 < a -> (h = -2 / (1 + a) <-> 2 + h * (1 + a) = 0).
Proof.
  intro A. split; intro H.
  - rewrite H. field. lra.
  - apply (Rmult_eq_reg_r (1 + a)); [| lra].
    replace (-2 / (1 + a) * (1 + a)) with (-2) by (field; lra). lra.
Qed.

Theorem one_value_smooths h a : -1 < a < 1 -> (smooths h a <-> h > 0 \/ h < -2 / (1 + a)).
Proof.
  intros [A B]. rewrite below_threshold by exact A. unfold smooths. rewrite corner_lt, own.
  destruct (Rtotal_order h 0) as [N | [Z | P]].
  - rewrite neg_l; [lra |]. assert (0 < - h * (1 - a)) by (apply Rmult_lt_0_compat; lra). lra.
  - subst h. replace (0 * (1 - a) * (2 + 0 * (1 + a))) with 0 by ring. lra.
  - assert (0 < h * (1 - a)) by (apply Rmult_lt_0_compat; lra).
    assert (0 < h * (1 + a)) by (apply Rmult_lt_0_compat; lra). rewrite pos_l; lra.
Qed.

Theorem one_value_ties h a : -1 < a < 1 -> (ties h a <-> h = 0 \/ h = -2 / (1 + a)).
Proof.
  intros [A B]. rewrite at_threshold by exact A. unfold ties. split.
  - intro E. assert (F : 0 <= from (h * a) h) by (apply corner_le; lra).
    assert (G : 0 <= from h (h * a)) by (apply corner_le; lra).
    assert (Z : from h (h * a) = - from (h * a) h) by (unfold from; ring).
    assert (Y : (h * (1 - a)) * (2 + h * (1 + a)) = 0) by (rewrite <- own; lra).
    apply Rmult_integral in Y. destruct Y as [Y | Y]; [left | right; exact Y].
    apply Rmult_integral in Y. lra.
  - intro E. assert (Y : from (h * a) h = 0).
    { rewrite own. destruct E as [E | E]; [subst h; ring | rewrite E; ring]. }
    assert (Z : from h (h * a) = - from (h * a) h) by (unfold from; ring).
    apply Rle_antisym; apply corner_le; lra.
Qed.

Theorem one_value_keeps h a : -1 < a < 1 -> (keeps h a <-> -2 / (1 + a) < h < 0).
Proof.
  intros I. pose proof (one_value_smooths h a I) as S. pose proof (one_value_ties h a I) as T.
  unfold smooths, ties, keeps in *.
  assert (W : -2 / (1 + a) < 0).
  { assert (K : 0 < / (1 + a)) by (apply Rinv_0_lt_compat; lra). unfold Rdiv. lra. }
  split; intro H.
  - assert (~ (h > 0 \/ h < -2 / (1 + a))) by (intro F; apply S in F; lra).
    assert (~ (h = 0 \/ h = -2 / (1 + a))) by (intro F; apply T in F; lra). lra.
  - destruct (Rtotal_order (Rabs (1 + h)) (Rabs (1 + h * a))) as [K | [K | K]]; [assumption | |]; exfalso.
    + symmetry in K. apply T in K. lra.
    + apply S in K. lra.
Qed.

(* -1 is safe for every A; every h < -1 smooths for an A > 0 on two tokens, whose eigenvalues are 1
   and a = -1/h. *)
Theorem minus_one_is_safe h a : -1 < a < 1 -> -1 <= h < 0 -> keeps h a.
Proof.
  intros I H. apply one_value_keeps; [assumption |]. split; [| lra].
  assert (T := below_threshold h a). destruct (Rle_dec h (-2 / (1 + a))) as [L |]; [| lra]. exfalso.
  destruct (Rle_lt_or_eq_dec _ _ L) as [L' | L'].
  - apply below_threshold in L'; [| lra].
    assert (0 <= (1 + h) * (1 + a)) by (apply Rmult_le_pos; lra). lra.
  - apply at_threshold in L'; [| lra].
    assert (0 <= (1 + h) * (1 + a)) by (apply Rmult_le_pos; lra). lra.
Qed.

Definition two_tokens (a : R) (i j : bool) : R := if Bool.eqb i j then (1 + a) / 2 else (1 - a) / 2.
Theorem two_tokens_attention a : -1 < a < 1 ->
  (forall i j, 0 < two_tokens a i j) /\ (forall i, two_tokens a i true + two_tokens a i false = 1) /\
  forall i, two_tokens a i true * 1 + two_tokens a i false * -1 = a * (if i then 1 else -1).
Proof.
  intro I. unfold two_tokens. repeat split; intros; repeat match goal with b : bool |- _ => destruct b end;
  simpl; lra.
Qed.
Theorem below_minus_one_smooths h : h < -1 -> exists a, -1 < a < 1 /\ smooths h a.
Proof.
  intro H. exists (-1 / h). assert (E : h * (-1 / h) = -1) by (field; lra).
  assert (I : -1 < -1 / h < 1).
  { split; apply (Rmult_lt_reg_l (- h)); lra. }
  split; [assumption |]. unfold smooths. rewrite E.
  replace (1 + -1) with 0 by ring. rewrite Rabs_R0. apply Rabs_pos_lt. lra.
Qed.

(* T2c: lists hs of eigenvalues of H and bs of A, but one 1. *)
Definition greatest (m : R) (l : list R) := In m l /\ forall x, In x l -> x <= m.
Definition least (m : R) (l : list R) := In m l /\ forall x, In x l -> m <= x.
Definition modulus (x : R) := Rabs (1 + x).
Definition top (l : list R) : R := fold_right Rmax 0 l.
Definition rho_C (hs : list R) := top (map modulus hs).
Definition pairs (hs bs : list R) := flat_map (fun h => map (fun b => h * b) bs) hs.
Definition rho_Q (hs bs : list R) := top (map modulus (pairs hs bs)).

Lemma top_greatest l : l <> [] -> (forall x, In x l -> 0 <= x) -> greatest (top l) l.
Proof.
  induction l as [| y l IH]; intros N P; [congruence |].
  destruct l as [| z l].
  - simpl. rewrite Rmax_left by (apply P; left; reflexivity). split; [left; reflexivity |].
    intros x [-> | []]. lra.
  - destruct IH as [I M]; [discriminate | intros; apply P; right; assumption |].
    change (top (y :: z :: l)) with (Rmax y (top (z :: l))). split.
    + unfold Rmax. destruct (Rle_dec y (top (z :: l))); [right; exact I | left; reflexivity].
    + intros x [-> | X]; [apply Rmax_l |]. eapply Rle_trans; [apply M; exact X | apply Rmax_r].
Qed.
Lemma greatest_unique m m' l : greatest m l -> greatest m' l -> m = m'.
Proof. intros [I G] [I' G']. apply Rle_antisym; auto. Qed.
Lemma top_is m l : (forall x, In x l -> 0 <= x) -> greatest m l -> top l = m.
Proof.
  intros P G. apply (greatest_unique _ _ l); [| exact G]. apply top_greatest; [| exact P].
  destruct G as [I _]. intro E. rewrite E in I. contradiction.
Qed.
Lemma moduli_pos l x : In x (map modulus l) -> 0 <= x.
Proof. rewrite in_map_iff. intros [y [<- _]]. apply Rabs_pos. Qed.
Lemma in_pairs hs bs x : In x (pairs hs bs) <-> exists h b, In h hs /\ In b bs /\ x = h * b.
Proof.
  unfold pairs. rewrite in_flat_map. split.
  - intros [h [Hh Hx]]. apply in_map_iff in Hx. destruct Hx as [b [E Hb]]. exists h, b; auto.
  - intros [h [b [Hh [Hb E]]]]. exists h; split; auto. apply in_map_iff. exists b; auto.
Qed.

(* |1 + x| is convex. *)
Lemma convex lo hi t M : lo <= t <= hi -> modulus lo <= M -> modulus hi <= M -> modulus t <= M.
Proof.
  unfold modulus. intros T L H. apply Rabs_le. apply Rabs_le_inv in L. apply Rabs_le_inv in H. lra.
Qed.
Lemma segment x u v t : u <= t <= v -> x * u <= x * t <= x * v \/ x * v <= x * t <= x * u.
Proof.
  intros [U V]. destruct (Rle_dec 0 x); [left | right]; split.
  - apply Rmult_le_compat_l; lra.
  - apply Rmult_le_compat_l; lra.
  - assert (0 <= - x * (v - t)) by (apply Rmult_le_pos; lra). lra.
  - assert (0 <= - x * (t - u)) by (apply Rmult_le_pos; lra). lra.
Qed.
Lemma convex_scaled x u v t M : u <= t <= v -> modulus (x * u) <= M -> modulus (x * v) <= M ->
  modulus (x * t) <= M.
Proof. intros T L H. destruct (segment x u v t T) as [S | S]; eapply convex; eauto. Qed.
Lemma convex_strict lo hi t M : lo <= t -> (t < hi \/ modulus hi < M) -> t <= hi ->
  modulus lo < M -> modulus hi <= M -> modulus t < M.
Proof.
  unfold modulus. intros A B C L H. apply Rabs_def2 in L. apply Rabs_le_inv in H.
  apply Rabs_def1; destruct B as [B | B]; try (apply Rabs_def2 in B); lra.
Qed.

Section Corners.
Variables (hs bs : list R) (q p a z : R).
Hypotheses (Hq : least q hs) (Hp : greatest p hs) (Ha : least a bs) (Hz : greatest z bs).
Hypothesis range : forall b, In b bs -> -1 < b < 1.

Theorem consensus_radius : rho_C hs = Rmax (modulus q) (modulus p).
Proof.
  destruct Hq as [qI qL], Hp as [pI pG]. apply top_is; [exact (moduli_pos hs) |]. split.
  - unfold Rmax. destruct (Rle_dec (modulus q) (modulus p)); apply in_map; assumption.
  - intros x Hx. apply in_map_iff in Hx. destruct Hx as [h [<- I]].
    apply (convex q p); [split; auto | apply Rmax_l | apply Rmax_r].
Qed.

Definition corner := Rmax (modulus (q * a)) (modulus (p * a)).
Definition other := Rmax (modulus (q * z)) (modulus (p * z)).

Lemma pair_in h b : In h hs -> In b bs -> modulus (h * b) <= rho_Q hs bs.
Proof.
  intros I J. assert (K : In (h * b) (pairs hs bs)) by (apply in_pairs; exists h, b; auto).
  destruct (top_greatest (map modulus (pairs hs bs))) as [_ G].
  - intro E. apply (in_map modulus) in K. rewrite E in K. contradiction.
  - apply moduli_pos.
  - apply G. apply in_map. exact K.
Qed.
Lemma corner_le_rho_Q : corner <= rho_Q hs bs.
Proof. apply Rmax_lub; apply pair_in; (apply Hq || apply Hp || apply Ha). Qed.

Theorem quotient_radius : rho_Q hs bs = Rmax corner other.
Proof.
  apply Rle_antisym.
  - destruct (top_greatest (map modulus (pairs hs bs))) as [I _].
    + intro E. assert (K : In (q * a) (pairs hs bs)).
      { apply in_pairs. exists q, a. split; [apply Hq | split; [apply Ha | reflexivity]]. }
      apply (in_map modulus) in K. rewrite E in K. contradiction.
    + apply moduli_pos.
    + fold (rho_Q hs bs) in I. apply in_map_iff in I. destruct I as [x [E J]]. rewrite <- E.
      apply in_pairs in J. destruct J as [h [b [Hh [Hb ->]]]].
      assert (QP : q <= h <= p) by (split; [apply Hq | apply Hp]; assumption).
      assert (AZ : a <= b <= z) by (split; [apply Ha | apply Hz]; assumption).
      apply (convex_scaled h a z); [exact AZ | |]; rewrite Rmult_comm;
        apply (convex_scaled _ q p h); try exact QP; rewrite Rmult_comm;
        unfold corner, other; eapply Rle_trans;
        [apply Rmax_l | apply Rmax_l | apply Rmax_r | apply Rmax_l
        |apply Rmax_l | apply Rmax_r | apply Rmax_r | apply Rmax_r].
  - apply Rmax_lub; [exact corner_le_rho_Q |].
    apply Rmax_lub; apply pair_in; (apply Hq || apply Hp || apply Hz).
Qed.

(* Where consensus is at most M and both corners at a are below M, so is every pair. *)
Lemma all_below M : rho_C hs <= M -> corner < M -> rho_Q hs bs < M.
Proof.
  intros HC HK. rewrite consensus_radius in HC.
  assert (C : modulus q <= M /\ modulus p <= M).
  { split; eapply Rle_trans; try exact HC; [apply Rmax_l | apply Rmax_r]. }
  assert (K : modulus (q * a) < M /\ modulus (p * a) < M).
  { split; eapply Rle_lt_trans; try exact HK; [apply Rmax_l | apply Rmax_r]. }
  destruct (top_greatest (map modulus (pairs hs bs))) as [I _].
  - intro E. assert (J : In (q * a) (pairs hs bs)).
    { apply in_pairs. exists q, a. split; [apply Hq | split; [apply Ha | reflexivity]]. }
    apply (in_map modulus) in J. rewrite E in J. contradiction.
  - apply moduli_pos.
  - fold (rho_Q hs bs) in I. apply in_map_iff in I. destruct I as [x [E J]]. rewrite <- E.
    apply in_pairs in J. destruct J as [h [b [Hh [Hb ->]]]].
    assert (QP : q <= h <= p) by (split; [apply Hq | apply Hp]; assumption).
    assert (AB : a <= b) by (apply Ha; assumption).
    assert (B := range b Hb). assert (A := range a (proj1 Ha)).
    assert (H1 : modulus h <= M) by (apply (convex q p); tauto).
    assert (H2 : modulus (h * a) < M).
    { unfold modulus in *. destruct K as [K1 K2]. apply Rabs_def2 in K1. apply Rabs_def2 in K2.
      destruct (segment a q p h QP); apply Rabs_def1; lra. }
    unfold modulus in *. apply Rabs_def2 in H2. apply Rabs_le_inv in H1.
    destruct (Rle_dec 0 h) as [P | N].
    + assert (h * a <= h * b) by (apply Rmult_le_compat_l; lra).
      destruct (Rle_lt_or_eq_dec 0 h P) as [P' | Z].
      * assert (h * b < h * 1) by (apply Rmult_lt_compat_l; lra). apply Rabs_def1; lra.
      * subst h. apply Rabs_def1; lra.
    + assert (0 <= - h * (b - a)) by (apply Rmult_le_pos; lra).
      assert (0 < - h * (1 - b)) by (apply Rmult_lt_0_compat; lra). apply Rabs_def1; lra.
Qed.

Theorem larger : rho_C hs < rho_Q hs bs <-> rho_C hs < corner.
Proof.
  split; intro H; [| pose proof corner_le_rho_Q; lra].
  destruct (Rlt_dec (rho_C hs) corner) as [| N]; [assumption | exfalso].
  pose proof (all_below (rho_Q hs bs)). lra.
Qed.
Theorem at_least : rho_C hs <= rho_Q hs bs -> rho_Q hs bs = corner.
Proof.
  intro H. apply Rle_antisym; [| exact corner_le_rho_Q].
  destruct (Rle_dec (rho_Q hs bs) corner) as [| N]; [assumption | exfalso].
  pose proof (all_below (rho_Q hs bs)). lra.
Qed.
Theorem equal : rho_Q hs bs = rho_C hs <-> corner = rho_C hs.
Proof.
  split; intro H; [rewrite <- at_least; lra |].
  apply Rle_antisym; [| pose proof corner_le_rho_Q; lra].
  destruct (Rle_dec (rho_Q hs bs) (rho_C hs)) as [| N]; [assumption | exfalso].
  assert (E := at_least). lra.
Qed.
Theorem smaller : rho_Q hs bs < rho_C hs <-> corner < rho_C hs.
Proof.
  split; intro H; [pose proof corner_le_rho_Q; lra |]. apply all_below; lra.
Qed.
End Corners.

(* T2d: the verdict from q = min h, p = max h and a = min spec(A) alone. *)
Definition end_radius q p := Rmax (modulus q) (modulus p).
Lemma max_lt x y z : Rmax x y < z <-> x < z /\ y < z.
Proof.
  split; [| intros [X Y]; apply Rmax_lub_lt; assumption].
  intro H. split; eapply Rle_lt_trans; try exact H; [apply Rmax_l | apply Rmax_r].
Qed.
Lemma max_le x y z : Rmax x y <= z <-> x <= z /\ y <= z.
Proof.
  split; [| intros [X Y]; apply Rmax_lub; assumption].
  intro H. split; eapply Rle_trans; try exact H; [apply Rmax_l | apply Rmax_r].
Qed.
Lemma lt_max z x y : z < Rmax x y <-> z < x \/ z < y.
Proof. unfold Rmax. destruct (Rle_dec x y); lra. Qed.
Lemma le_max z x y : z <= Rmax x y <-> z <= x \/ z <= y.
Proof. unfold Rmax. destruct (Rle_dec x y); lra. Qed.

Section ClosedForm.
Variables q p a : R.
Hypotheses (A : -1 < a < 1) (QP : q <= p).
Let K := Rmax (modulus (q * a)) (modulus (p * a)).
Let C := end_radius q p.

Lemma smooth_corners : K < C <->
  (0 < from (q * a) q /\ 0 < from (p * a) q) \/ (0 < from (q * a) p /\ 0 < from (p * a) p).
Proof.
  unfold K, C, end_radius. rewrite max_lt, !lt_max, <- !corner_lt. unfold modulus. split.
  - intros [[H | H] [G | G]]; [left; auto | | | right; auto];
      destruct (Rle_dec (Rabs (1 + q)) (Rabs (1 + p))); (right; split; lra) || (left; split; lra).
  - tauto.
Qed.
Lemma at_most_corners : K <= C <->
  (0 <= from (q * a) q /\ 0 <= from (p * a) q) \/ (0 <= from (q * a) p /\ 0 <= from (p * a) p).
Proof.
  unfold K, C, end_radius. rewrite max_le, !le_max, <- !corner_le. unfold modulus. split.
  - intros [[H | H] [G | G]]; [left; auto | | | right; auto];
      destruct (Rle_dec (Rabs (1 + q)) (Rabs (1 + p))); (right; split; lra) || (left; split; lra).
  - tauto.
Qed.

(* p > 0 *)
Lemma p_own : 0 < p -> 0 < from (p * a) p.
Proof.
  intro P. rewrite own. assert (0 < p * (1 + a)) by (apply Rmult_lt_0_compat; lra).
  apply Rmult_lt_0_compat; [apply Rmult_lt_0_compat |]; lra.
Qed.
Lemma q_wins : 0 < p -> q * (1 + a) < -2 -> q - p * a < 0 -> 2 + q + p * a < 0 ->
  0 < from (q * a) q /\ 0 < from (p * a) q.
Proof.
  intros P H D S. assert (Q : q < 0).
  { apply Rnot_le_lt. intro N. assert (0 <= q * (1 + a)) by (apply Rmult_le_pos; lra). lra. }
  split; [rewrite own |]; unfold from.
  - assert (0 < - q * (1 - a)) by (apply Rmult_lt_0_compat; lra). apply neg_l; lra.
  - apply neg_l; lra.
Qed.

Theorem positive_smooths : 0 < p -> (K < C <-> p > a * q \/ q * (1 + a) < -2).
Proof.
  intro P. rewrite smooth_corners. pose proof (p_own P) as O. split.
  - intros [[H _] | [H _]].
    + rewrite own in H. destruct (Rlt_dec (q * (1 + a)) (-2)) as [| N]; [right; assumption | left].
      assert (0 < q).
      { apply Rnot_le_lt. intro Q. assert (0 <= - q * (1 - a)) by (apply Rmult_le_pos; lra).
        assert (0 <= - q * (1 - a) * (2 + q * (1 + a))) by (apply Rmult_le_pos; lra). lra. }
      assert (0 < q * (1 - a)) by (apply Rmult_lt_0_compat; lra). lra.
    + left. unfold from in H. apply Rnot_le_gt. intro N.
      assert (0 <= (a * q - p) * (2 + p + q * a)) by (apply Rmult_le_pos; lra). lra.
  - intros H. destruct (Rlt_dec (a * q) p) as [L | L].
    + destruct (Rlt_dec 0 (2 + p + q * a)) as [S | S].
      * right. split; [| assumption]. unfold from. apply Rmult_lt_0_compat; lra.
      * left. assert (q < 0).
        { apply Rnot_le_lt. intro Q. assert (0 <= q * (1 + a)) by (apply Rmult_le_pos; lra). lra. }
        assert (0 < a).
        { apply Rnot_le_lt. intro Z. assert (0 <= - q * - a) by (apply Rmult_le_pos; lra). lra. }
        assert (0 < (1 - a) * - q) by (apply Rmult_lt_0_compat; lra).
        assert (0 < p * (1 - a)) by (apply Rmult_lt_0_compat; lra).
        assert (0 < p * a) by (apply Rmult_lt_0_compat; lra). apply q_wins; lra.
    + destruct H as [H | H]; [lra |]. left.
      assert (q < 0).
      { apply Rnot_le_lt. intro Q. assert (0 <= q * (1 + a)) by (apply Rmult_le_pos; lra). lra. }
      assert (a < 0).
      { apply Rnot_le_lt. intro Z. assert (0 <= a * - q) by (apply Rmult_le_pos; lra). lra. }
      assert (0 < p * - a) by (apply Rmult_lt_0_compat; lra).
      assert (- a * p <= - a * (a * q)) by (apply Rmult_le_compat_l; lra).
      assert (0 < ((1 - a) * (1 + a)) * - q) by (apply Rmult_lt_0_compat; [apply Rmult_lt_0_compat |]; lra).
      apply q_wins; lra.
Qed.

Lemma q_at_least : 0 < p -> q * (1 + a) <= -2 -> 2 + q + p * a <= 0 -> q - p * a <= 0 ->
  0 <= from (q * a) q /\ 0 <= from (p * a) q.
Proof.
  intros P H S D. assert (Q : q < 0).
  { apply Rnot_le_lt. intro N. assert (0 <= q * (1 + a)) by (apply Rmult_le_pos; lra). lra. }
  split; [rewrite own |]; unfold from.
  - assert (0 < - q * (1 - a)) by (apply Rmult_lt_0_compat; lra). apply neg_le; lra.
  - replace ((q - p * a) * (2 + p * a + q)) with (- (q - p * a) * - (2 + p * a + q)) by ring.
    apply Rmult_le_pos; lra.
Qed.

Theorem positive_at_most : 0 < p -> (K <= C <-> p >= a * q \/ q * (1 + a) <= -2).
Proof.
  intro P. split.
  - intro H. destruct (Rlt_dec (q * (1 + a)) (-2)) as [| N]; [right; lra |].
    destruct (Rle_dec (q * (1 + a)) (-2)) as [| N']; [right; assumption | left].
    apply Rnot_lt_ge. intro L. apply at_most_corners in H. destruct H as [[H _] | [H _]].
    + rewrite own in H. assert (0 <= q).
      { apply Rnot_lt_le. intro Q. assert (0 < - q * (1 - a)) by (apply Rmult_lt_0_compat; lra).
        assert (0 < - q * (1 - a) * (2 + q * (1 + a))) by (apply Rmult_lt_0_compat; lra). lra. }
      assert (0 <= q * (1 - a)) by (apply Rmult_le_pos; lra). lra.
    + unfold from in H.
      assert (0 < (a * q - p) * (2 + p + q * a)) by (apply Rmult_lt_0_compat; lra). lra.
  - intros [H | H].
    + destruct (Rlt_dec (a * q) p) as [L | L].
      * left. apply positive_smooths; lra.
      * apply at_most_corners. right. unfold from. replace (p - q * a) with 0 by lra.
        pose proof (p_own P) as O. unfold from in O. lra.
    + destruct (Rle_lt_or_eq_dec _ _ H) as [H' | E]; [left; apply positive_smooths; lra |].
      destruct (Rlt_dec (a * q) p) as [L | L]; [left; apply positive_smooths; lra |].
      apply at_most_corners. left.
      assert (q < 0).
      { apply Rnot_le_lt. intro Q. assert (0 <= q * (1 + a)) by (apply Rmult_le_pos; lra). lra. }
      assert (a < 0).
      { apply Rnot_le_lt. intro Z. assert (0 <= a * - q) by (apply Rmult_le_pos; lra). lra. }
      assert (0 < p * - a) by (apply Rmult_lt_0_compat; lra).
      assert (- a * p <= - a * (a * q)) by (apply Rmult_le_compat_l; lra).
      assert (0 < ((1 - a) * (1 + a)) * - q) by (apply Rmult_lt_0_compat; [apply Rmult_lt_0_compat |]; lra).
      apply q_at_least; lra.
Qed.

Theorem positive_ties : 0 < p ->
  (K = C <-> (q * (1 + a) >= -2 /\ p = a * q) \/ (q * (1 + a) = -2 /\ p <= a * q)).
Proof.
  intro P. pose proof (positive_smooths P) as S. pose proof (positive_at_most P) as M. split; intro H.
  - assert (p >= a * q \/ q * (1 + a) <= -2) by (apply M; lra).
    assert (~ (p > a * q \/ q * (1 + a) < -2)) by (intro F; apply S in F; lra). lra.
  - assert (K <= C) by (apply M; lra).
    assert (~ K < C) by (intro F; apply S in F; lra). lra.
Qed.

(* p = 0 *)
Theorem zero_smooths : p = 0 -> (K < C <-> q < -2 /\ q * (1 + a) < -2).
Proof.
  intro P. rewrite smooth_corners, own. rewrite P in *. unfold from. split.
  - intros [[H G] | [_ G]]; [| exfalso; lra].
    replace ((q - 0 * a) * (2 + 0 * a + q)) with (q * (2 + q)) in G by ring.
    assert (q < 0). { apply Rnot_le_lt. intro N. assert (q = 0) by lra. subst q. lra. }
    apply neg_l in G; [| assumption]. split; [lra |].
    apply neg_l in H; [lra |]. assert (0 < - q * (1 - a)) by (apply Rmult_lt_0_compat; lra). lra.
  - intros [H G]. left. split.
    + assert (0 < - q * (1 - a)) by (apply Rmult_lt_0_compat; lra). apply neg_l; lra.
    + replace ((q - 0 * a) * (2 + 0 * a + q)) with (q * (2 + q)) by ring. apply neg_l; lra.
Qed.
Theorem zero_keeps : p = 0 -> (C < K <-> a < 0 /\ q < 0 /\ q * (1 + a) > -2).
Proof.
  intro P. unfold C, K, end_radius. rewrite max_lt, !lt_max. unfold modulus. rewrite P in *.
  replace (0 * a) with 0 by ring. split.
  - intros [H' [G | G]]; [| lra].
    assert (H : Rabs (1 + q) < Rabs (1 + q * a)) by lra. clear H'.
    apply corner_lt in H. apply corner_lt in G. unfold from in H, G.
    replace ((q * a - q) * (2 + q + q * a)) with ((- q) * (1 - a) * (2 + q * (1 + a))) in H by ring.
    assert (q < 0). { apply Rnot_le_lt. intro N. assert (q = 0) by lra. subst q. lra. }
    assert (X : 0 < (- q) * (1 - a)) by (apply Rmult_lt_0_compat; lra).
    apply pos_l in H; [| exact X].
    repeat split; try lra. apply Rnot_le_lt. intro N.
    assert (Y : 0 <= - q * a) by (apply Rmult_le_pos; lra).
    replace ((q * a - 0) * (2 + 0 + q * a)) with (- (- q * a) * (2 + q * a)) in G by ring.
    assert (0 <= (- q * a) * (2 + q * a)) by (apply Rmult_le_pos; lra). lra.
  - intros [Z [Q G]]. split; left; apply corner_lt; unfold from.
    + replace ((q * a - q) * (2 + q + q * a)) with ((- q) * (1 - a) * (2 + q * (1 + a))) by ring.
      apply Rmult_lt_0_compat; [apply Rmult_lt_0_compat |]; lra.
    + assert (0 < - q * - a) by (apply Rmult_lt_0_compat; lra). apply Rmult_lt_0_compat; lra.
Qed.

(* p < 0 *)
Lemma below_both : p < 0 -> (q < Rmin (-2 / (1 + a)) (-2 - a * p) <->
  q * (1 + a) < -2 /\ 2 + q + p * a < 0).
Proof.
  intro P. assert (E : q < -2 / (1 + a) <-> 2 + q * (1 + a) < 0) by (apply below_threshold; lra).
  unfold Rmin. destruct (Rle_dec (-2 / (1 + a)) (-2 - a * p)); lra.
Qed.
Lemma up_to_both : p < 0 -> (q <= Rmin (-2 / (1 + a)) (-2 - a * p) <->
  q * (1 + a) <= -2 /\ 2 + q + p * a <= 0).
Proof.
  intro P. assert (E : q < -2 / (1 + a) <-> 2 + q * (1 + a) < 0) by (apply below_threshold; lra).
  assert (F : q = -2 / (1 + a) <-> 2 + q * (1 + a) = 0) by (apply at_threshold; lra).
  unfold Rmin. destruct (Rle_dec (-2 / (1 + a)) (-2 - a * p)); lra.
Qed.

Lemma q_pa : p < 0 -> q - p * a < 0.
Proof. intro P. assert (0 < - p * (1 - a)) by (apply Rmult_lt_0_compat; lra). lra. Qed.

Theorem negative_smooths : p < 0 -> (K < C <-> q < Rmin (-2 / (1 + a)) (-2 - a * p)).
Proof.
  intro P. rewrite below_both, smooth_corners by exact P. pose proof (q_pa P) as D. split.
  - intros [[H G] | [_ H]].
    + rewrite own in H. unfold from in G. apply neg_l in G; [| exact D].
      apply neg_l in H; [lra |]. assert (0 < - q * (1 - a)) by (apply Rmult_lt_0_compat; lra). lra.
    + rewrite own in H. apply neg_l in H;
        [| assert (0 < - p * (1 - a)) by (apply Rmult_lt_0_compat; lra); lra].
      assert (0 <= (p - q) * (1 + a)) by (apply Rmult_le_pos; lra). lra.
  - intros [H G]. left. rewrite own. unfold from. split; apply neg_l; try lra.
    assert (0 < - q * (1 - a)) by (apply Rmult_lt_0_compat; lra). lra.
Qed.
Theorem negative_at_most : p < 0 -> (K <= C <-> q <= Rmin (-2 / (1 + a)) (-2 - a * p)).
Proof.
  intro P. rewrite up_to_both, at_most_corners by exact P. pose proof (q_pa P) as D. split.
  - intros [[H G] | [_ H]].
    + rewrite own in H. unfold from in G. apply neg_le in G; [| exact D].
      apply neg_le in H; [lra |]. assert (0 < - q * (1 - a)) by (apply Rmult_lt_0_compat; lra). lra.
    + rewrite own in H. apply neg_le in H;
        [| assert (0 < - p * (1 - a)) by (apply Rmult_lt_0_compat; lra); lra].
      assert (0 <= (p - q) * (1 + a)) by (apply Rmult_le_pos; lra). lra.
  - intros [H G]. left. rewrite own. unfold from. split; apply neg_le; try lra.
    assert (0 < - q * (1 - a)) by (apply Rmult_lt_0_compat; lra). lra.
Qed.
Theorem negative_ties : p < 0 -> (K = C <-> q = Rmin (-2 / (1 + a)) (-2 - a * p)).
Proof.
  intro P. pose proof (negative_smooths P). pose proof (negative_at_most P). lra.
Qed.
End ClosedForm.

(* The whole of T2d for lists. *)
Section Lists.
Variables (hs bs : list R) (q p a : R).
Hypotheses (Hq : least q hs) (Hp : greatest p hs) (Ha : least a bs).
Hypothesis range : forall b, In b bs -> -1 < b < 1.
Let A : -1 < a < 1. Proof. exact (range a (proj1 Ha)). Qed.
Let QP : q <= p. Proof. exact (proj2 Hp q (proj1 Hq)). Qed.

Theorem T2d :
  (0 < p -> (rho_Q hs bs < rho_C hs <-> p > a * q \/ q * (1 + a) < -2) /\
    (rho_Q hs bs = rho_C hs <->
      (q * (1 + a) >= -2 /\ p = a * q) \/ (q * (1 + a) = -2 /\ p <= a * q))) /\
  (p = 0 -> (rho_Q hs bs < rho_C hs <-> q < -2 /\ q * (1 + a) < -2) /\
    (rho_C hs < rho_Q hs bs <-> a < 0 /\ q < 0 /\ q * (1 + a) > -2)) /\
  (p < 0 -> (rho_Q hs bs < rho_C hs <-> q < Rmin (-2 / (1 + a)) (-2 - a * p)) /\
    (rho_Q hs bs = rho_C hs <-> q = Rmin (-2 / (1 + a)) (-2 - a * p))).
Proof.
  assert (C := consensus_radius hs q p Hq Hp).
  assert (S := smaller hs bs q p a Hq Hp Ha range). assert (E := equal hs bs q p a Hq Hp Ha range).
  assert (L := larger hs bs q p a Hq Hp Ha range). rewrite C in *. unfold corner in *.
  repeat match goal with |- _ /\ _ => split | |- ?P -> _ => intro end;
    first [rewrite S | rewrite E | rewrite L].
  - apply (positive_smooths q p a A); assumption.
  - apply (positive_ties q p a A); assumption.
  - apply (zero_smooths q p a A); assumption.
  - apply (zero_keeps q p a A); assumption.
  - apply (negative_smooths q p a A); assumption.
  - apply (negative_ties q p a A); assumption.
Qed.

(* (i) every h in [-1, 0) keeps, whatever A. *)
Theorem T2d_universal : (forall h, In h hs -> -1 <= h < 0) -> rho_C hs < rho_Q hs bs.
Proof.
  intro H. assert (P := H p (proj1 Hp)). assert (Q := H q (proj1 Hq)).
  destruct T2d as [_ [_ N]]. destruct (N (proj2 P)) as [S E].
  assert (T : ~ q <= Rmin (-2 / (1 + a)) (-2 - a * p)).
  { intro F. apply (up_to_both q p a A) in F; [| lra].
    assert (0 <= (1 + q) * (1 + a)) by (apply Rmult_le_pos; lra). lra. }
  destruct (Rtotal_order (rho_Q hs bs) (rho_C hs)) as [F | [F | F]]; [| | exact F]; exfalso; apply T.
  - apply S in F. lra.
  - apply E in F. lra.
Qed.

(* (iii) some h > 0: *)
Theorem T2d_some_positive : 0 < p -> (0 <= a \/ 0 <= q) -> rho_Q hs bs < rho_C hs.
Proof.
  intros P Z. destruct T2d as [N _]. destruct (N P) as [S _]. apply S. left.
  destruct (Rle_dec 0 q) as [Q | Q].
  - assert (a * q <= 1 * q) by (apply Rmult_le_compat_r; lra).
    destruct (Rle_lt_or_eq_dec 0 q Q) as [Q' | E].
    + assert (a * q < 1 * q) by (apply Rmult_lt_compat_r; lra). lra.
    + subst q. lra.
  - assert (0 <= a * - q) by (apply Rmult_le_pos; lra). lra.
Qed.
Theorem T2d_not_always : 0 < p -> p < a * q -> -2 < q * (1 + a) -> rho_C hs < rho_Q hs bs.
Proof.
  intros P F G. destruct T2d as [N _]. destruct (N P) as [S E].
  destruct (Rtotal_order (rho_Q hs bs) (rho_C hs)) as [K | [K | K]]; [| | exact K]; exfalso.
  - apply S in K. lra.
  - apply E in K. lra.
Qed.
End Lists.

(* The hypotheses hold for one eigenvalue -1/2 of H and one, 0, of A beside 1. *)
Lemma least_of_one x : least x (x :: nil).
Proof. split; [now left | intros y [<- | []]; lra]. Qed.
Lemma greatest_of_one x : greatest x (x :: nil).
Proof. split; [now left | intros y [<- | []]; lra]. Qed.
Lemma zero_in_range b : In b (0 :: nil) -> -1 < b < 1.
Proof. intros [<- | []]; lra. Qed.
Definition half : R := - (1 / 2).
Definition T2d_instance :=
  @T2d (half :: nil) (0 :: nil) half half 0
    (least_of_one half) (greatest_of_one half) (least_of_one 0) zero_in_range.
Definition T2d_not_always_instance :=
  @T2d_not_always (half :: nil) (0 :: nil) half half 0
    (least_of_one half) (greatest_of_one half) (least_of_one 0) zero_in_range.
Definition T2d_some_positive_instance :=
  @T2d_some_positive (half :: nil) (0 :: nil) half half 0
    (least_of_one half) (greatest_of_one half) (least_of_one 0) zero_in_range.
Definition T2d_universal_instance :=
  @T2d_universal (half :: nil) (0 :: nil) half half 0
    (least_of_one half) (greatest_of_one half) (least_of_one 0) zero_in_range.
Definition at_least_instance :=
  @at_least (half :: nil) (0 :: nil) half half 0
    (least_of_one half) (greatest_of_one half) (least_of_one 0) zero_in_range.
Definition equal_instance :=
  @equal (half :: nil) (0 :: nil) half half 0
    (least_of_one half) (greatest_of_one half) (least_of_one 0) zero_in_range.
Definition larger_instance :=
  @larger (half :: nil) (0 :: nil) half half 0
    (least_of_one half) (greatest_of_one half) (least_of_one 0) zero_in_range.
Definition smaller_instance :=
  @smaller (half :: nil) (0 :: nil) half half 0
    (least_of_one half) (greatest_of_one half) (least_of_one 0) zero_in_range.
Definition consensus_radius_instance :=
  @consensus_radius (half :: nil) half half (least_of_one half) (greatest_of_one half).
Definition quotient_radius_instance :=
  @quotient_radius (half :: nil) (0 :: nil) half half 0 0
    (least_of_one half) (greatest_of_one half) (least_of_one 0) (greatest_of_one 0).
