"""The paper's figures and tables as data; running them; drawing them."""
