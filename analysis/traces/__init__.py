"""Public traces of clusters, Google's of 2011 and 2019 and Alibaba's of 2018 and 2022, made into observations."""
