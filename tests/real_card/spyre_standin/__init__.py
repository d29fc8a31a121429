"""The stand-in card below the real torch_spyre: carries out the OpSpecs of compiled bundles on device memory."""
