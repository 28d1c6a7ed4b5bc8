#include "controlplane/apiserver/flowcontrol/work.h"

#include <algorithm>
#include <cmath>

#include "controlplane/apiserver/endpoints/list_options.h"

namespace keelson::apiserver::flowcontrol {
namespace {

constexpr int kMaxListSeats = 100, kMaxWriteSeats = 10;
constexpr int64_t kBytesPerSeat = 100'000;
// A list from the cache is streamed in pieces.
constexpr int64_t kMostOfStreamedList = 1'000'000;
constexpr double kWatchersPerSeat = 10;
constexpr std::chrono::nanoseconds kEventTime = std::chrono::milliseconds(5);

// Continuations and exact revisions are read from etcd.
bool IsFromCache(const http::Query& query) {
  const std::string_view match = query.Get("resourceVersionMatch");
  if (match == "Exact") return false;
  if (match == "NotOlderThan") return true;
  if (!query.Get("continue").empty()) return false;
  const std::string_view version = query.Get("resourceVersion"), limit = query.Get("limit");
  return version.empty() || version == "0" || limit.empty() || limit == "0";
}

int Capped(int max_seats, int limit) { return max_seats <= 0 ? limit : std::min(max_seats, limit); }

}  // namespace

int MaxSeatsOf(int nominal, int hand_size) {
  if (hand_size <= 0) return 0;
  constexpr double kMostOfLevel = 0.15;
  return std::max(1, std::min(static_cast<int>(std::ceil(nominal * kMostOfLevel)), nominal / hand_size));
}

WorkEstimate WorkEstimator::Estimate(const RequestInfo& request, const http::Query& query,
                                     int max_seats) const {
  if (!request.is_resource) return {};
  const std::string& verb = request.verb;
  if (verb == "list" || (verb == "watch" && IsSet(query, "sendInitialEvents"))) {
    return OfList(request, query, max_seats);
  }
  if (verb == "create" || verb == "update" || verb == "patch" || verb == "delete") {
    return OfWrite(request, max_seats);
  }
  return {};
}

WorkEstimate WorkEstimator::OfList(const RequestInfo& request, const http::Query& query,
                                   int max_seats) const {
  const int most = Capped(max_seats, kMaxListSeats);
  Result<std::optional<int64_t>> limit = IntParameter(query, "limit");
  if (!limit) return {most};  // it will be rejected
  const Stored stored = options_.stored(request);
  if (stored.objects == 0) return {};
  const bool from_cache = request.verb == "watch" || IsFromCache(query);
  int64_t loaded = stored.objects;
  if (int64_t wanted = limit->value_or(0); wanted > 0) loaded = std::min(loaded, wanted);
  if (!request.name.empty()) {
    loaded = 1;
  } else if (!from_cache && (!request.field_selector.empty() || !request.label_selector.empty())) {
    loaded = std::max(loaded, stored.objects / 2);
  }
  int64_t bytes = loaded * (stored.bytes / stored.objects);
  if (from_cache) bytes = std::min(bytes, kMostOfStreamedList);
  const int64_t seats = (bytes + kBytesPerSeat - 1) / kBytesPerSeat;
  return {static_cast<int>(std::clamp<int64_t>(seats, 1, most))};
}

WorkEstimate WorkEstimator::OfWrite(const RequestInfo& request, int max_seats) const {
  // Tokens cannot be watched.
  if (request.resource == "serviceaccounts" && request.subresource == "token") return {};
  const int watchers = options_.watchers(request);
  WorkEstimate work;
  work.watchers = watchers;
  if (watchers < kWatchersPerSeat) return work;
  const double seats = std::ceil(watchers / kWatchersPerSeat);
  // Reduces an excessive width, and extends the duration.
  work.final_seats = std::min(static_cast<int>(seats), Capped(max_seats, kMaxWriteSeats));
  work.additional = std::chrono::duration_cast<std::chrono::nanoseconds>(kEventTime * seats * options_.scale /
                                                                         work.final_seats);
  return work;
}

}  // namespace keelson::apiserver::flowcontrol
