#include "cni/host-local/host_local.h"

int main() { return keelson::cni::PluginMain(keelson::cni::HostLocalPlugin()); }
