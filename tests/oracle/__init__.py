"""An oracle for (A, H, X_0) that shares no code with the project: integers and fractions only.

It answers what the project's verdict answers, by other means: characteristic polynomials factored
over the integers, spectral components of X_0 as exact vectors, moduli told apart by certified
enclosures of roots and called equal only past the bound below which an algebraic integer is 0.
`python -m tests.oracle N --seed S` holds the project against it on N drawn cases.
"""
