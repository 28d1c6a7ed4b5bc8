#include "kubelet/services.h"

int main(int argc, char** argv) { return keelson::kubelet::RunKubelet(argc, argv); }
