// Creations and deletions that the informer has not shown yet (upstream's ControllerExpectations). Without
// them a second sync on a lagging store would create or delete the same pods again.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::controllers {

class Expectations {  // thread safe
 public:
  explicit Expectations(Clock& clock) : clock_(clock) {}

  void ExpectCreations(const std::string& key, int count) { Expect(key, count, {}); }
  void ExpectDeletions(const std::string& key, const std::vector<std::string>& pods) { Expect(key, 0, pods); }
  void Expect(const std::string& key, int creations, const std::vector<std::string>& deletions);
  void CreationObserved(const std::string& key);  // or the creation failed
  void DeletionObserved(const std::string& key, const std::string& pod);
  // True when nothing is outstanding, or for more than 5 minutes, after which an event is assumed lost.
  bool Satisfied(const std::string& key);
  void Forget(const std::string& key);

 private:
  struct Outstanding {
    int creations = 0;
    std::set<std::string> deletions;
    SteadyTime since;
  };
  Clock& clock_;
  Mutex mutex_;
  std::map<std::string, Outstanding> outstanding_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::controllers
