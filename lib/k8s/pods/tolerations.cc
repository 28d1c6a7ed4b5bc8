#include "lib/k8s/pods/tolerations.h"

#include <charconv>

#include <google/protobuf/util/message_differencer.h>

namespace keelson::k8s {

namespace {

// Lt and Gt compare whole numbers without leading zeros.
bool ParseNumber(std::string_view text, int64_t& number) {
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  return !text.empty() && parsed.ec == std::errc() && parsed.ptr == end;
}

}  // namespace

bool Tolerates(const corev1::Toleration& toleration, const corev1::Taint& taint) {
  if (!toleration.effect().empty() && toleration.effect() != taint.effect()) return false;
  if (!toleration.key().empty() && toleration.key() != taint.key()) return false;
  const std::string& op = toleration.operator_();
  if (op.empty() || op == "Equal") return toleration.value() == taint.value();
  if (op == "Exists") return true;
  if (op != "Lt" && op != "Gt") return false;
  int64_t ours = 0, theirs = 0;
  if (!ParseNumber(toleration.value(), ours) || !ParseNumber(taint.value(), theirs)) return false;
  return op == "Lt" ? theirs < ours : theirs > ours;
}

bool Tolerates(const Tolerations& tolerations, const corev1::Taint& taint) {
  for (const corev1::Toleration& toleration : tolerations) {
    if (Tolerates(toleration, taint)) return true;
  }
  return false;
}

const corev1::Taint* FindUntolerated(const Taints& taints, const Tolerations& tolerations) {
  for (const corev1::Taint& taint : taints) {
    if (taint.effect() != kNoSchedule && taint.effect() != kNoExecute) continue;
    if (!Tolerates(tolerations, taint)) return &taint;
  }
  return nullptr;
}

const corev1::Taint* FindUntolerated(const Taints& taints, const Tolerations& tolerations,
                                     std::string_view effect) {
  for (const corev1::Taint& taint : taints) {
    if (taint.effect() == effect && !Tolerates(tolerations, taint)) return &taint;
  }
  return nullptr;
}

bool SameTaint(const corev1::Taint& a, const corev1::Taint& b) {
  return a.key() == b.key() && a.effect() == b.effect();
}

bool AddToleration(Tolerations& tolerations, const corev1::Toleration& toleration) {
  for (const corev1::Toleration& have : tolerations) {
    if (google::protobuf::util::MessageDifferencer::Equals(have, toleration)) return false;
  }
  *tolerations.Add() = toleration;
  return true;
}

}  // namespace keelson::k8s
