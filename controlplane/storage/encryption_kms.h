// Encryption by way of a KMS v2 plugin: values are encrypted with keys derived from a seed of ours, the seed
// by the plugin, once for each key of the plugin. A value holds the encrypted seed, so reading it asks the
// plugin only the first time that a seed is met.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "controlplane/storage/transformer.h"
#include "lib/base/clock.h"

namespace keelson::storage {

class KmsTransformer : public Transformer {
 public:
  struct Options {
    std::string name, endpoint;  // endpoint: unix:///run/plugin.sock
    std::chrono::milliseconds timeout{3000};
  };
  explicit KmsTransformer(Options options, Clock& clock = Clock::Real());
  ~KmsTransformer() override;

  // Asks the plugin for its health and its key; on a new key makes a new seed. To be called once before the
  // first write and then every kProbePeriod, sooner after a failure. Writes go on for a while without it.
  Result<> Probe();
  static constexpr std::chrono::seconds kProbePeriod{60}, kProbePeriodAfterFailure{10};
  // What the last probe found.
  Result<> Health() const;

  Result<Opened> FromStorage(std::string_view data, std::string_view etcd_key) const override;
  Result<std::string> ToStorage(std::string_view bytes, std::string_view etcd_key) const override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::storage
