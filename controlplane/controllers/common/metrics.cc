#include "controlplane/controllers/common/metrics.h"

namespace keelson::controllers {

Metrics& TheMetrics() {
  static Metrics all;
  return all;
}

}  // namespace keelson::controllers
