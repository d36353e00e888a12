"""What arXiv 2410.10609 (Arangath Joseph, Sieber, Zeilinger, Amo Alonso) says of lambda-skip
connections, read in its abstract and in public reviews, which quote its Theorem 4.1."""
