#include "cni/loopback/loopback.h"

int main() { return keelson::cni::PluginMain(keelson::cni::LoopbackPlugin()); }
