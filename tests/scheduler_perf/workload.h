// Workloads shaped after upstream's test/integration/scheduler_perf: how many nodes and pods of what kind,
// and the pods a second that upstream's own tests ask for.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "lib/api/types.h"

namespace keelson::scheduler::perf {

struct Workload {
  std::string name;
  int nodes = 5000;
  int init_pods = 0;      // there before, on nodes in turn
  int measured_pods = 0;  // created while the scheduler runs
  int threshold = 0;      // upstream's, pods a second; 0: it names none
  std::function<corev1::Node(int)> node;
  std::function<corev1::Pod(int)> init_pod, measured_pod;
  // Objects that come, beside the measured pods, one each `churn_interval`; with `recreate` each goes before
  // the next.
  std::function<corev1::Pod(int)> churn_pod;
  bool churn_node = false, recreate = false;
  std::chrono::milliseconds churn_interval{0};
  std::vector<corev1::Service> services;
};

std::vector<Workload> Workloads();

}  // namespace keelson::scheduler::perf
