(* T2a; T3b's disc with its circle and intervals, and the verdict over all pairs; T3c's other forms of
   the universal disc.                                                                            *)
From Coq Require Import Reals Psatz Lra List.
From Coquelicot Require Import Coquelicot.
Require Import T3c_disc.
Import ListNotations.
Open Scope C_scope.
Open Scope R_scope.

(* T2a *)
Theorem end_points (h a b : R) : a <= b <= 1 ->
  Rabs (1 + h * b) <= Rmax (Rabs (1 + h * a)) (Rabs (1 + h)) /\
  (a < b < 1 -> h <> 0 -> Rabs (1 + h * b) < Rmax (Rabs (1 + h * a)) (Rabs (1 + h))).
Proof.
  intros [ab b1].
  assert (M1 := Rmax_l (Rabs (1 + h * a)) (Rabs (1 + h))).
  assert (M2 := Rmax_r (Rabs (1 + h * a)) (Rabs (1 + h))).
  set (M := Rmax (Rabs (1 + h * a)) (Rabs (1 + h))) in *. clearbody M.
  apply Rabs_le_between in M1. apply Rabs_le_between in M2.
  destruct (Rle_dec 0 h) as [h0 | h0].
  - assert (h * a <= h * b) by nra. assert (h * b <= h) by nra. split.
    + apply Rabs_le_between. lra.
    + intros [ab' b1'] hn. assert (0 < h) by lra.
      assert (h * a < h * b) by nra. assert (h * b < h) by nra.
      apply Rabs_lt_between. lra.
  - assert (h * b <= h * a) by nra. assert (h <= h * b) by nra. split.
    + apply Rabs_le_between. lra.
    + intros [ab' b1'] hn. assert (h * b < h * a) by nra. assert (h < h * b) by nra.
      apply Rabs_lt_between. lra.
Qed.

Lemma Cmod_le_sqr (z w : C) : Cmod z <= Cmod w <-> fst z ^ 2 + snd z ^ 2 <= fst w ^ 2 + snd w ^ 2.
Proof.
  rewrite <- !Cmod_sqr. pose proof (Cmod_ge_0 z). pose proof (Cmod_ge_0 w).
  split; intro; nra.
Qed.

(* T3b (1): the form, for the comparison and for equality. *)
Theorem disc_form (h a : C) :
  Cmod (1 + h)%C ^ 2 - Cmod (1 + h * a)%C ^ 2 =
  Cmod h ^ 2 * (1 - Cmod a ^ 2) + 2 * Re (h * (1 - a))%C.
Proof. destruct h as [x y], a as [u v]. rewrite !Cmod_sqr. simpl. ring. Qed.

Lemma pos_sqr (x y : R) : 0 <= x -> 0 <= y -> (x < y <-> x ^ 2 - y ^ 2 < 0) /\ (x = y <-> x ^ 2 - y ^ 2 = 0).
Proof.
  intros x0 y0. repeat split; intro H; nra.
Qed.

Theorem disc_form_sign (h a : C) :
  (Cmod (1 + h)%C < Cmod (1 + h * a)%C <->
   Cmod h ^ 2 * (1 - Cmod a ^ 2) + 2 * Re (h * (1 - a))%C < 0) /\
  (Cmod (1 + h)%C = Cmod (1 + h * a)%C <->
   Cmod h ^ 2 * (1 - Cmod a ^ 2) + 2 * Re (h * (1 - a))%C = 0).
Proof. rewrite <- disc_form. apply pos_sqr; apply Cmod_ge_0. Qed.

Definition centre (a : C) : C := (- ((1 - Cconj a) / RtoC (1 - Cmod a ^ 2)%R))%C.
Definition radius (a : C) : R := Cmod (1 - a)%C / (1 - Cmod a ^ 2).

Lemma gap_pos (a : C) : Cmod a < 1 -> 0 < 1 - Cmod a ^ 2.
Proof. intro H. pose proof (Cmod_ge_0 a). nra. Qed.

(* The power of h with respect to the circle. *)
Lemma circle_power (h a : C) : Cmod a < 1 ->
  Cmod (h - centre a)%C ^ 2 - radius a ^ 2 =
  (Cmod (1 + h)%C ^ 2 - Cmod (1 + h * a)%C ^ 2) / (1 - Cmod a ^ 2).
Proof.
  intro Ha. assert (G := gap_pos a Ha). unfold radius, centre.
  unfold Rdiv at 1. rewrite Rpow_mult_distr, pow_inv.
  rewrite disc_form. set (g := 1 - Cmod a ^ 2) in *.
  assert (Eg : g = 1 - Cmod a ^ 2) by reflexivity. clearbody g.
  destruct h as [x y], a as [u v]. rewrite !Cmod_sqr in *. simpl in *. field_simplify_eq; [| lra].
  rewrite Eg in *. ring.
Qed.

Theorem disc_of_a_whole (h a : C) : Cmod a < 1 ->
  (Cmod (1 + h)%C < Cmod (1 + h * a)%C <-> Cmod (h - centre a)%C < radius a) /\
  (Cmod (1 + h)%C = Cmod (1 + h * a)%C <-> Cmod (h - centre a)%C = radius a) /\
  Cmod (0 - centre a)%C = radius a.
Proof.
  intro Ha. assert (G := gap_pos a Ha).
  assert (R0 : 0 <= radius a).
  { unfold radius. apply Rmult_le_pos; [apply Cmod_ge_0 | left; apply Rinv_0_lt_compat; assumption]. }
  assert (K : 0 < / (1 - Cmod a ^ 2)) by (apply Rinv_0_lt_compat; assumption).
  assert (W : forall h, (Cmod (1 + h)%C < Cmod (1 + h * a)%C <-> Cmod (h - centre a)%C < radius a) /\
    (Cmod (1 + h)%C = Cmod (1 + h * a)%C <-> Cmod (h - centre a)%C = radius a)).
  { intro z. destruct (pos_sqr _ _ (Cmod_ge_0 (1 + z)%C) (Cmod_ge_0 (1 + z * a)%C)) as [p q].
    destruct (pos_sqr _ _ (Cmod_ge_0 (z - centre a)%C) R0) as [p' q'].
    rewrite p, q, p', q', (circle_power z a Ha). unfold Rdiv.
    set (D := Cmod (1 + z)%C ^ 2 - Cmod (1 + z * a)%C ^ 2). set (k := / (1 - Cmod a ^ 2)) in *.
    split; split; intro H; nra. }
  split; [apply W | split; [apply W |]].
  apply W. f_equal. ring.
Qed.

(* T3b (2) *)
Theorem disc_real (h a : R) : -1 < a < 1 ->
  (Rabs (1 + h) < Rabs (1 + h * a) <-> - 2 / (1 + a) < h < 0).
Proof.
  intro Ha. assert (P : 0 < 1 + a) by lra.
  assert (E : Rabs (1 + h) < Rabs (1 + h * a) <-> h * ((1 + a) * h + 2) < 0).
  { destruct (pos_sqr _ _ (Rabs_pos (1 + h)) (Rabs_pos (1 + h * a))) as [p _].
    rewrite p, !pow2_abs. split; intro; nra. }
  rewrite E. assert (I : - 2 / (1 + a) < h <-> 0 < (1 + a) * h + 2).
  { split; intro H.
    - apply (Rmult_lt_compat_l (1 + a)) in H; [| lra].
      replace ((1 + a) * (- 2 / (1 + a))) with (- 2) in H by (field; lra). lra.
    - apply (Rmult_lt_reg_l (1 + a)); [lra |].
      replace ((1 + a) * (- 2 / (1 + a))) with (- 2) by (field; lra). lra. }
  rewrite I. split; intro; nra.
Qed.

Theorem disc_real_h (h : R) (a : C) : Cmod a < 1 ->
  (Cmod (1 + RtoC h)%C < Cmod (1 + RtoC h * a)%C <->
   - (2 * (1 - Re a)) / (1 - Cmod a ^ 2) < h < 0).
Proof.
  intro Ha. assert (G := gap_pos a Ha).
  destruct (disc_form_sign (RtoC h) a) as [p _]. rewrite p.
  assert (U : Re a < 1).
  { pose proof (Cmod_sqr a) as Q. unfold Re. pose proof (Cmod_ge_0 a).
    assert (fst a ^ 2 <= Cmod a ^ 2) by (rewrite Q; pose proof (pow2_ge_0 (snd a)); lra). nra. }
  set (g := 1 - Cmod a ^ 2) in *. clearbody g.
  assert (F : Cmod (RtoC h) ^ 2 * g + 2 * Re (RtoC h * (1 - a))%C = h * (g * h + 2 * (1 - Re a))).
  { destruct a as [u v]. rewrite Cmod_sqr. simpl. ring. }
  rewrite F. set (k := 1 - Re a) in *. assert (K : 0 < k) by (unfold k; lra). clearbody k.
  assert (I : - (2 * k) / g < h <-> 0 < g * h + 2 * k).
  { split; intro H.
    - apply (Rmult_lt_compat_l g) in H; [| lra].
      replace (g * (- (2 * k) / g)) with (- (2 * k)) in H by (field; lra). lra.
    - apply (Rmult_lt_reg_l g); [lra |].
      replace (g * (- (2 * k) / g)) with (- (2 * k)) by (field; lra). lra. }
  rewrite I. split; intro; nra.
Qed.

(* T3b (3): lists of eigenvalues, with multiplicity. *)
Definition largest (l : list R) : R := fold_right Rmax 0 l.
Definition rho_C (hs : list C) : R := largest (map (fun h => Cmod (1 + h)%C) hs).
Definition rho_Q (hs as' : list C) : R :=
  largest (map (fun p => Cmod (1 + fst p * snd p)%C) (list_prod hs as')).

Lemma largest_spec (l : list R) (x : R) : 0 <= x ->
  (x < largest l <-> exists y, In y l /\ x < y) /\ (largest l < x -> forall y, In y l -> y < x).
Proof.
  intro x0. induction l as [| z l [IH IH']]; simpl.
  - split; [split; [intro; exfalso; lra | intros [y [[] _]]] | intros _ y []].
  - split; [split |].
    + intro H. destruct (Rmax_Rlt z (largest l) x) as [_ _].
      destruct (Rle_dec z x) as [zx | zx].
      * assert (L : x < largest l). { unfold Rmax in H. destruct (Rle_dec z (largest l)); lra. }
        destruct (proj1 IH L) as [y [iy xy]]. exists y. split; [right |]; assumption.
      * exists z. split; [left; reflexivity | lra].
    + intros [y [[E | iy] xy]].
      * subst. pose proof (Rmax_l y (largest l)). lra.
      * assert (L : x < largest l) by (apply IH; exists y; split; assumption).
        pose proof (Rmax_r z (largest l)). lra.
    + intros H y [E | iy].
      * subst. pose proof (Rmax_l y (largest l)). lra.
      * apply IH'; [| assumption]. pose proof (Rmax_r z (largest l)). lra.
Qed.

Theorem loses_in_union (h : C) (as' : list C) : List.Forall (fun a => Cmod a < 1) as' ->
  (Cmod (1 + h)%C < rho_Q [h] as' <-> exists a, In a as' /\ Cmod (h - centre a)%C < radius a).
Proof.
  intro small. unfold rho_Q. rewrite (proj1 (largest_spec _ _ (Cmod_ge_0 _))). split.
  - intros [y [iy xy]]. apply in_map_iff in iy. destruct iy as [[h' a] [E ip]].
    apply in_prod_iff in ip. destruct ip as [[Eh | []] ia]. subst. exists a. split; [assumption |].
    apply (proj1 (disc_of_a_whole h' a (proj1 (List.Forall_forall _ _) small a ia))). assumption.
  - intros [a [ia da]]. exists (Cmod (1 + h * a)%C). split.
    + apply in_map_iff. exists (h, a). split; [reflexivity |]. apply in_prod; [left; reflexivity | assumption].
    + apply (proj1 (disc_of_a_whole h a (proj1 (List.Forall_forall _ _) small a ia))). assumption.
Qed.

(* rho_C < rho_Q: one of the n d pairs exceeds |1 + h'| for every h'. *)
Theorem verdict_over_pairs (hs as' : list C) : hs <> nil ->
  (rho_C hs < rho_Q hs as' <-> exists h a, In h hs /\ In a as' /\
   forall h', In h' hs -> Cmod (1 + h')%C < Cmod (1 + h * a)%C).
Proof.
  intro ne. assert (C0 : 0 <= rho_C hs).
  { unfold rho_C. destruct hs as [| h hs]; [congruence |]. simpl.
    pose proof (Rmax_l (Cmod (1 + h)%C) (largest (map (fun h => Cmod (1 + h)%C) hs))).
    pose proof (Cmod_ge_0 (1 + h)%C). unfold largest in *. lra. }
  unfold rho_Q. rewrite (proj1 (largest_spec _ _ C0)). split.
  - intros [y [iy xy]]. apply in_map_iff in iy. destruct iy as [[h a] [E ip]].
    apply in_prod_iff in ip. destruct ip as [ih ia]. exists h, a. split; [assumption | split; [assumption |]].
    intros h' ih'. subst. simpl in *.
    apply (proj2 (largest_spec (map (fun h => Cmod (1 + h)%C) hs) _ (Cmod_ge_0 _)) xy).
    apply in_map_iff. exists h'. split; [reflexivity | assumption].
  - intros [h [a [ih [ia H]]]]. exists (Cmod (1 + h * a)%C). split.
    + apply in_map_iff. exists (h, a). split; [reflexivity | apply in_prod; assumption].
    + unfold rho_C. destruct (Rlt_dec (largest (map (fun h => Cmod (1 + h)%C) hs)) (Cmod (1 + h * a)%C)); [assumption |].
      exfalso. assert (P : 0 < Cmod (1 + h * a)%C).
      { pose proof (Cmod_ge_0 (1 + h)%C). specialize (H h ih). lra. }
      assert (Q : forall l, (forall y, In y l -> y < Cmod (1 + h * a)%C) -> largest l < Cmod (1 + h * a)%C).
      { induction l as [| z l IH]; simpl; intro Hl; [assumption |].
        unfold Rmax. destruct (Rle_dec z (largest l)).
        - apply IH. intros y iy. apply Hl. right. assumption.
        - apply Hl. left. reflexivity. }
      apply n. apply Q. intros y iy. apply in_map_iff in iy. destruct iy as [h' [E ih']]. subst. apply H. assumption.
Qed.

(* T3c (2) *)
Theorem disc_inverse (h : C) : h <> RtoC 0 -> (in_disc h <-> Re (/ h)%C <= -1).
Proof.
  intro hn. destruct h as [x y].
  assert (S : 0 < x ^ 2 + y ^ 2).
  { destruct (Req_dec x 0) as [E|E]; [| nra]. destruct (Req_dec y 0) as [E'|E']; [| nra].
    exfalso. apply hn. rewrite E, E'. reflexivity. }
  assert (D : in_disc (x, y) <-> x * x + y * y + x <= 0).
  { unfold in_disc. assert (Q := Cmod_sqr ((x, y) + RtoC (/2))%C). simpl in Q.
    pose proof (Cmod_ge_0 ((x, y) + RtoC (/2))%C). split; [intros [H1 _]; nra |].
    intro; split; [nra | assumption]. }
  rewrite D. simpl. assert (I : x / (x * (x * 1) + y * (y * 1)) * (x ^ 2 + y ^ 2) = x) by (field; nra).
  set (k := x / (x * (x * 1) + y * (y * 1))) in *. split; intro; nra.
Qed.

Theorem disc_of_real (x : R) : in_disc (RtoC x) <-> -1 <= x < 0.
Proof.
  unfold in_disc. assert (Q := Cmod_sqr (RtoC x + RtoC (/2))%C). simpl in Q.
  pose proof (Cmod_ge_0 (RtoC x + RtoC (/2))%C). split.
  - intros [H1 H2]. assert (x <> 0) by (intro E; apply H2; rewrite E; reflexivity).
    assert (x * x + x <= 0) by nra. nra.
  - intros [H1 H2]. split; [nra |]. intro E. apply (f_equal fst) in E. simpl in E. lra.
Qed.

(* T3c (3) *)
Theorem disc_witness (h : C) : h <> RtoC 0 -> ~ in_disc h ->
  let a := Rmax 0 (Re (- (/ h))%C) in
  0 <= a < 1 /\ Cmod (1 + h * RtoC a)%C < Cmod (1 + h)%C.
Proof.
  intros hn out a. assert (O : ~ Re (/ h)%C <= -1) by (intro H; apply out; apply disc_inverse; assumption).
  destruct h as [x y].
  assert (S : 0 < x ^ 2 + y ^ 2).
  { destruct (Req_dec x 0) as [E|E]; [| nra]. destruct (Req_dec y 0) as [E'|E']; [| nra].
    exfalso. apply hn. rewrite E, E'. reflexivity. }
  unfold a. simpl in *.
  assert (I : x / (x * (x * 1) + y * (y * 1)) * (x ^ 2 + y ^ 2) = x) by (field; nra).
  set (k := x / (x * (x * 1) + y * (y * 1))) in *. clearbody k.
  rewrite Cmod_lt_sqr. simpl. unfold Rmax. destruct (Rle_dec 0 (- k)) as [K | K].
  - split; [lra |].
    assert (Q : 0 < (x ^ 2 + y ^ 2) * (1 + k) ^ 2) by (apply Rmult_lt_0_compat; [assumption | nra]).
    match goal with |- ?l < ?r => assert (E : r - l = (x ^ 2 + y ^ 2) * (1 + k) ^ 2 +
      2 * (1 + k) * (x - k * (x ^ 2 + y ^ 2))) by ring end.
    replace (x - k * (x ^ 2 + y ^ 2)) with 0 in E by lra. lra.
  - split; [lra |]. assert (0 < k) by lra. assert (0 < x) by nra. nra.
Qed.
