(* T13b: s residual streams x_k' = sum_l R_kl x_l + p_k b, R row-stochastic, the branch b any vector
   (attention, feed-forward, norms, computed from anything), in any norm.  No axioms.              *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
Require Import T1_blocks T7b_certificate T7b_matrix.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Streams.
Variables (F : realFieldType) (s' m : nat).
Local Notation s := s'.+1.
(* A stream, all its tokens and features in one row of X. *)
Implicit Types (X : 'M[F]_(s, m)) (R : 'M[F]_s) (p : 'cV[F]_s) (b : 'rV[F]_m).
Definition ones : 'cV[F]_s := const_mx 1.
Definition streams R p b X : 'M[F]_(s, m) := R *m X + p *m b.

Theorem equal_streams R b (x : 'rV[F]_m) : R *m ones = ones ->
  streams R ones b (ones *m x) = ones *m (x + b).
Proof. by move=> R1; rewrite /streams mulmxA R1 mulmxDr. Qed.

Variable N : 'rV[F]_m -> F.
Hypothesis N_ge0 : forall v, 0 <= N v.
Hypothesis N_scale : forall a v, N (a *: v) = `|a| * N v.
Hypothesis N_add : forall u v, N (u + v) <= N u + N v.
Local Notation spreadX := (@diam F s' m N).

Definition step_spread (p : 'cV[F]_s) : F := osc (fun k => p k 0).

Theorem streams_step R p b X t : stochastic R -> tau_le R t ->
  spreadX (streams R p b X) <= t * spreadX X + step_spread p * N b.
Proof.
move=> S T; rewrite {1}/diam; set i := (far _ _).1; set k := (far _ _).2.
have -> : row i (streams R p b X) - row k (streams R p b X) =
  (row i (R *m X) - row k (R *m X)) + (p i 0 - p k 0) *: b.
  have E l : row l (p *m b) = p l 0 *: b.
    by apply/rowP => j; rewrite !mxE big_ord1.
  have G l : row l (streams R p b X) = row l (R *m X) + p l 0 *: b by rewrite /streams linearD /= E.
  by rewrite !G scalerBl opprD addrACA.
apply: le_trans (N_add _ _) _; apply: ler_add.
  exact: contraction_rows.
have O a c : p a 0 - p c 0 <= step_spread p := osc_ge (fun k => p k 0) a c.
by rewrite N_scale ler_wpmul2r // ler_norml O andbT ler_oppl opprB O.
Qed.

(* Any number of layers, R and b of each computed from anything; p = 1. *)
Variables (R : nat -> 'M[F]_(s, m) -> 'M[F]_s) (b : nat -> 'M[F]_(s, m) -> 'rV[F]_m) (t : nat -> F).
Fixpoint streams_state L X :=
  if L is l.+1 then let Y := streams_state l X in streams (R l Y) ones (b l Y) Y else X.
Variable X : 'M[F]_(s, m).
Hypothesis stochR : forall l, stochastic (R l (streams_state l X)).
Hypothesis tauR : forall l, tau_le (R l (streams_state l X)) (t l).
Hypothesis t_ge0 : forall l, 0 <= t l.

Theorem streams_agree L :
  spreadX (streams_state L X) <= (\prod_(l < L) t l) * spreadX X.
Proof.
elim: L => [|L IH] /=; first by rewrite big_ord0 mul1r.
apply: le_trans (streams_step _ _ _ (stochR L) (tauR L)) _.
have -> : step_spread ones = 0.
  by rewrite /step_spread /osc !mxE subrr.
rewrite mul0r addr0 big_ord_recr /= [_ * t L]mulrC -mulrA.
exact: ler_wpmul2l.
Qed.
End Streams.

(* The branch A (sum_l q_l x_l) W: equal streams follow one stream with H scaled by q^T 1. *)
Section OneStream.
Variables (F : fieldType) (s n d : nat) (R : 'M[F]_s) (q : 'I_s -> F).
Variables (A : 'M[F]_n) (W : 'M[F]_d).
Definition mixed (p : 'I_s -> F) (x : 'I_s -> 'M[F]_(n, d)) k : 'M[F]_(n, d) :=
  \sum_l R k l *: x l + p k *: (A *m (\sum_l q l *: x l) *m W).
Theorem as_one_stream (x : 'M[F]_(n, d)) k : (forall k, \sum_l R k l = 1) ->
  mixed (fun=> 1) (fun=> x) k = x + A *m x *m ((\sum_l q l) *: W).
Proof.
move=> R1; rewrite /mixed -!scaler_suml R1 !scale1r.
by rewrite -scalemxAr -scalemxAr -scalemxAl.
Qed.
End OneStream.

(* The differences to the first stream follow R's quotient alone, whatever the branch; its
   characteristic polynomial is that of R without one factor X - 1. *)
Section Differences.
Variables (F : fieldType) (s m : nat) (R : 'M[F]_(1 + s)).
Hypothesis R1 : R *m e F (1 + s) = e F (1 + s).
Definition differences (X : 'M[F]_(1 + s, m)) : 'M[F]_(s, m) := dsubmx X - e F s *m usubmx X.

Theorem differences_follow_R (X : 'M[F]_(1 + s, m)) (b : 'rV[F]_m) :
  differences (R *m X + e F (1 + s) *m b) = Bp R *m differences X /\
  char_poly R = ('X - 1) * char_poly (Bp R).
Proof.
split; last exact: char_poly_quotient.
have [r1 r2] := rows R1.
have E : e F (1 + s) = col_mx 1%:M (e F s).
  apply/matrixP=> i j; rewrite !mxE; case: splitP => k _; rewrite !mxE //.
  by rewrite !ord1 eqxx.
rewrite E mul_col_mx mul1mx -{1}[X]vsubmxK -{1}[R]submxK mul_block_col add_col_mx.
rewrite /differences col_mxKd col_mxKu /Bp.
set U := usubmx X; set D := dsubmx X; set e1 := e F s in r1 r2 *.
have u : ulsubmx R = 1%:M - ursubmx R *m e1 by rewrite -r1 addrK.
have l : dlsubmx R = e1 - drsubmx R *m e1 by rewrite -{1}r2 addrK.
have -> : (drsubmx R - e1 *m ursubmx R) *m (D - e1 *m U) =
  drsubmx R *m D - drsubmx R *m e1 *m U - (e1 *m ursubmx R *m D - e1 *m ursubmx R *m e1 *m U).
  by rewrite mulmxBl !mulmxBr !mulmxA.
have -> : dlsubmx R *m U = e1 *m U - drsubmx R *m e1 *m U by rewrite l mulmxBl.
have -> : ulsubmx R *m U = U - ursubmx R *m e1 *m U by rewrite u mulmxBl mul1mx.
rewrite !mulmxDr ?mulmxN !mulmxA.
move: (e1 *m U) (drsubmx R *m e1 *m U) (drsubmx R *m D) (e1 *m ursubmx R *m e1 *m U)
  (e1 *m ursubmx R *m D) (e1 *m b) => x c f g h k.
by apply/matrixP => i j; rewrite !mxE; ring.
Qed.
End Differences.

(* The hypotheses hold for two streams that R mixes evenly; for R = 1, too. *)
Section Instances.
Variable R : realFieldType.
Definition streams_step_instance := @streams_step R 1 1 (@size1 R) (@size1_ge0 R) (@size1_scale R) (@size1_add R).
Definition streams_agree_instance (X : 'M[R]_(2, 1)) :=
  @streams_agree R 1 1 (@size1 R) (@size1_ge0 R) (@size1_scale R) (@size1_add R) (fun _ _ => (@even R)) (fun _ Y => row 0 Y) (fun=> 0) X
    (fun=> (even_stochastic R)) (fun=> (even_tau R)) (fun=> (zero_ge0 R)).
Definition differences_follow_R_instance := @differences_follow_R R 1 1 1%:M (mul1mx _).
End Instances.
