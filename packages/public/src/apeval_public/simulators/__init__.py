"""Other people's simulators as whole problems: an aircraft in gusts, a car in city traffic."""
