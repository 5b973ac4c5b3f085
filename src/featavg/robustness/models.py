"""x."""
from featavg.networks.shallow import ShallowNet
def as_shallow(model):
    return model if isinstance(model, ShallowNet) else model.to_shallow()
