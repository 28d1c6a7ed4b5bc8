// Creates pods in growing batches.
#pragma once

#include <functional>

namespace keelson::controllers {

// Calls create(n) with batches of 1, 2, 4, ... until `count` pods exist or a batch has a failure. `create`
// returns the number of successes in its batch. Returns the total successes. With an exhausted quota or an
// invalid template only one request fails, not a thousand.
int SlowStartBatch(int count, const std::function<int(int)>& create);

}  // namespace keelson::controllers
