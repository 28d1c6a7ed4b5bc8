#include "cni/bridge/bridge.h"

int main() { return keelson::cni::PluginMain(keelson::cni::BridgePlugin()); }
