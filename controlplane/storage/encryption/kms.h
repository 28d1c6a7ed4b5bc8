// Envelope encryption with a KMS v2 plugin: values are encrypted with keys derived from a local seed, and the
// plugin encrypts the seed, once for each of its keys. A value holds the encrypted seed, so the plugin is called
// only for the first value of a seed.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "controlplane/storage/encryption/transformer.h"
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

  // Asks the plugin for its health and its key id; a new key id makes a new seed. To be called before the first
  // write and then every kProbePeriod, sooner after a failure. Writes go on for a while without the plugin.
  Result<> Probe();
  static constexpr std::chrono::seconds kProbePeriod{60}, kProbePeriodAfterFailure{10};
  // The result of the last Probe().
  Result<> Health() const;

  Result<Opened> FromStorage(std::string_view data, std::string_view etcd_key) const override;
  Result<std::string> ToStorage(std::string_view bytes, std::string_view etcd_key) const override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::storage
