"""Do several ways to measure one fleet agree?"""
