// Decides what becomes of a recorded event: a new Event object, a higher count on one that was sent before,
// or nothing when an object floods us. After client-go: similar events with ever new messages are folded
// into one after ten within ten minutes; an object gets 25 events at once and one in five minutes then.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "lib/api/types.h"
#include "lib/base/clock.h"

namespace keelson::client {

class EventCorrelator {  // not thread safe
 public:
  EventCorrelator(std::string component, std::string host)
      : component_(std::move(component)), host_(std::move(host)) {}

  struct Outcome {
    corev1::Event event;  // complete; count above 1 means that it has been sent before
    std::string key;      // for Sent()
  };
  // nullopt: dropped as spam.
  std::optional<Outcome> Correlate(const corev1::ObjectReference& object, std::string_view type,
                                   std::string_view reason, std::string message, WallTime now);
  // The event had to be created under another name or anew: later counts go there.
  void Renamed(const std::string& key, const std::string& name);

  static constexpr size_t kMaxEntries = 4096;

 private:
  struct Series {
    std::string name;
    int count = 0;
    metav1::Time first;
  };
  struct Similar {
    std::set<size_t> messages;  // hashes
    WallTime last;
  };
  struct Bucket {
    double tokens;
    WallTime last;
  };
  // A map that forgets its oldest keys.
  template <typename T>
  struct Bounded {
    std::map<std::string, T, std::less<>> map;
    std::deque<std::string> order;
    T& At(const std::string& key, const T& initial);
  };

  bool TakeToken(const std::string& object_key, WallTime now);
  bool FoldMessage(const std::string& key, std::string_view message, WallTime now);
  std::string NewName(const corev1::ObjectReference& object, WallTime now);

  const std::string component_, host_;
  Bounded<Series> series_;
  Bounded<Similar> similar_;
  Bounded<Bucket> buckets_;
  int64_t last_stamp_ = 0;
};

}  // namespace keelson::client
