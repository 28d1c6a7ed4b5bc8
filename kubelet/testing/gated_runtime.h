// A runtime whose calls pass a gate, where tests inject faults.
#pragma once

#include <memory>
#include <string>

#include "kubelet/cri/runtime.h"

namespace keelson::kubelet {

class RuntimeGate {  // thread safe
 public:
  struct Call {
    std::string name;  // "CreateContainer main"; of other calls the method only
    bool effect;       // false: a read
  };
  virtual ~RuntimeGate() = default;
  // An error is the call's result. From Before: the call was not made; from After: it was.
  virtual Result<> Before(const Call& call, std::stop_token stop) = 0;
  virtual Result<> After(const Call&) { return {}; }
};

std::unique_ptr<cri::RuntimeService> GatedRuntime(cri::RuntimeService& real, RuntimeGate& gate);
std::unique_ptr<cri::ImageService> GatedImages(cri::ImageService& real, RuntimeGate& gate);

}  // namespace keelson::kubelet
