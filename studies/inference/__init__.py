"""Does the posterior find the truth, and how honest is it?"""
