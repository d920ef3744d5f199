class Sampler:
    def __init__(self, interval=1.0):
        pass

    def start(self):
        pass

    def stop(self, own_cpu_s=None):
        return {"foreign_cores": 0.0}
