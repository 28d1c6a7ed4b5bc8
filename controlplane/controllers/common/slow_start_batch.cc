#include "controlplane/controllers/common/slow_start_batch.h"

#include <algorithm>

namespace keelson::controllers {

int SlowStartBatch(int count, const std::function<int(int)>& create) {
  int made = 0;
  for (int batch = std::min(count, 1); batch > 0; batch = std::min(2 * batch, count - made)) {
    int successes = create(batch);
    made += successes;
    if (successes < batch) break;
  }
  return made;
}

}  // namespace keelson::controllers
