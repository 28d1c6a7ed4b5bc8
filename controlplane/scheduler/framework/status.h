// What plugins answer: of one node (FilterStatus) or of a pod (Status), after fwk.Status of kube-scheduler.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace keelson::scheduler {

// The texts of filter reasons, each as a small number. Not thread safe: the scheduling thread owns it.
class Reasons {
 public:
  // The number of `text`; the same text always has the same number.
  uint16_t Intern(std::string_view text);
  // `id` comes from Intern(). The reference is valid until the next Intern().
  const std::string& Text(uint16_t id) const { return texts_[id]; }
  size_t size() const { return texts_.size(); }

 private:
  std::unordered_map<std::string, uint16_t> ids_;
  std::vector<std::string> texts_;
};

// The answer of a filter about one node. It holds no text, because there is one a node and pod.
struct FilterStatus {
  // kUnschedulableAndUnresolvable: the pod would not fit even if other pods were evicted.
  enum class Code : uint8_t { kSuccess, kUnschedulable, kUnschedulableAndUnresolvable };
  Code code = Code::kSuccess;
  uint8_t count = 0;                  // of `reasons`
  std::array<uint16_t, 6> reasons{};  // numbers from Reasons

  bool ok() const { return code == Code::kSuccess; }
  // Reasons beyond the sixth are dropped.
  void Add(uint16_t reason) {
    if (count < reasons.size()) reasons[count++] = reason;
  }
  static FilterStatus Unschedulable(uint16_t reason) { return Of(Code::kUnschedulable, reason); }
  static FilterStatus UnschedulableAndUnresolvable(uint16_t reason) {
    return Of(Code::kUnschedulableAndUnresolvable, reason);
  }
  bool operator==(const FilterStatus&) const = default;

 private:
  static FilterStatus Of(Code code, uint16_t reason) {
    FilterStatus status;
    status.code = code;
    status.Add(reason);
    return status;
  }
};

// The answer of any other extension point.
struct Status {
  enum class Code { kSuccess, kSkip, kWait, kUnschedulable, kUnschedulableAndUnresolvable, kError };
  Code code = Code::kSuccess;
  std::string message;

  bool ok() const { return code == Code::kSuccess; }
  bool skip() const { return code == Code::kSkip; }
  bool rejected() const {
    return code == Code::kUnschedulable || code == Code::kUnschedulableAndUnresolvable;
  }
  static Status Skip() { return {Code::kSkip, ""}; }
  static Status Unschedulable(std::string message) { return {Code::kUnschedulable, std::move(message)}; }
  static Status UnschedulableAndUnresolvable(std::string message) {
    return {Code::kUnschedulableAndUnresolvable, std::move(message)};
  }
  static Status Failed(std::string message) { return {Code::kError, std::move(message)}; }
};

// The status of an extension point and the plugin that gave it. `plugin` is empty when the status is ok.
struct PluginStatus {
  Status status;
  std::string_view plugin;
};

}  // namespace keelson::scheduler
