//! Writes an ONNX graph: constants, operators, one output.
//!
//! It knows the ONNX messages and no architecture. Invariant: the same calls in the same order give the same
//! bytes, since every value's name is its place in the order.

use std::cell::RefCell;

use rten_onnx::onnx::{
    AttributeProto, AttributeType, DataType, Dimension, GraphProto, ModelProto, NodeProto,
    OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto, TypeProtoTensor, ValueInfoProto,
};
use rten_onnx::protobuf::{EncodeMessage, ValueWriter};

use super::EncodeFault;

/// Operator set of the graph. Source: ONNX operator changelog; `Gelu` needs 20.
const OPSET: i64 = 20;
/// Message version that goes with [`OPSET`]. Source: ONNX versioning table.
const IR_VERSION: i64 = 9;

/// The name of a value in the graph.
pub(super) type Name = String;

/// A graph under construction.
#[derive(Default)]
pub(super) struct GraphWriter {
    graph: GraphProto,
    values: usize,
}

impl GraphWriter {
    /// An `i32` input; every dimension is named, none is fixed.
    pub(super) fn input(&mut self, name: &str, dimensions: &[&str]) -> Name {
        self.graph.input.push(value_info(name, DataType::INT32, dimensions));
        name.to_owned()
    }

    /// A constant of floats.
    pub(super) fn floats(&mut self, shape: &[usize], values: &[f32]) -> Name {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(DataType::FLOAT, shape, bytes)
    }

    /// A constant of signed bytes.
    pub(super) fn signed_bytes(&mut self, shape: &[usize], values: &[i8]) -> Name {
        let bytes = values.iter().map(|value| value.cast_unsigned()).collect();
        self.constant(DataType::INT8, shape, bytes)
    }

    /// A single unsigned byte.
    pub(super) fn byte(&mut self, value: u8) -> Name {
        self.constant(DataType::UINT8, &[], vec![value])
    }

    /// A vector of integers, as operators take their shapes and axes.
    pub(super) fn integers(&mut self, values: &[i64]) -> Name {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(DataType::INT64, &[values.len()], bytes)
    }

    /// Applies an operator and returns the name of its result.
    pub(super) fn apply(&mut self, operator: &str, inputs: &[&str], attributes: Vec<AttributeProto>) -> Name {
        let output = self.fresh_name();
        self.graph.node.push(NodeProto {
            name: Some(format!("{operator}_{output}")),
            op_type: Some(operator.to_owned()),
            input: inputs.iter().map(|&name| name.to_owned()).collect(),
            output: vec![output.clone()],
            attribute: attributes,
            ..NodeProto::default()
        });
        output
    }

    /// Names `result` as the graph's output and encodes the model.
    pub(super) fn finish(
        mut self,
        result: &str,
        name: &str,
        dimensions: &[&str],
    ) -> Result<Vec<u8>, EncodeFault> {
        self.graph.node.push(NodeProto {
            op_type: Some("Identity".to_owned()),
            input: vec![result.to_owned()],
            output: vec![name.to_owned()],
            ..NodeProto::default()
        });
        self.graph.output.push(value_info(name, DataType::FLOAT, dimensions));
        let model = ModelProto {
            ir_version: Some(IR_VERSION),
            graph: Some(self.graph),
            opset_import: vec![OperatorSetIdProto { domain: Some(String::new()), version: Some(OPSET) }],
            ..ModelProto::default()
        };
        let mut bytes = Vec::new();
        model
            .encode(ValueWriter::new(&mut bytes))
            .map_err(|fault| EncodeFault(format!("the encoder's graph cannot be written: {fault}")))?;
        Ok(bytes)
    }

    fn constant(&mut self, kind: DataType, shape: &[usize], bytes: Vec<u8>) -> Name {
        let name = self.fresh_name();
        self.graph.initializer.push(TensorProto {
            dims: shape.iter().map(|&size| size as i64).collect(),
            data_type: Some(kind),
            raw_data: Some(RefCell::new(bytes)),
            name: Some(name.clone()),
            ..TensorProto::default()
        });
        name
    }

    fn fresh_name(&mut self) -> Name {
        self.values += 1;
        format!("v{}", self.values)
    }
}

/// An integer attribute of an operator.
pub(super) fn integer(name: &str, value: i64) -> AttributeProto {
    AttributeProto {
        name: Some(name.to_owned()),
        i: Some(value),
        r#type: Some(AttributeType::INT),
        ..AttributeProto::default()
    }
}

/// A float attribute of an operator.
pub(super) fn float(name: &str, value: f32) -> AttributeProto {
    AttributeProto {
        name: Some(name.to_owned()),
        f: Some(value),
        r#type: Some(AttributeType::FLOAT),
        ..AttributeProto::default()
    }
}

/// An attribute that lists integers.
pub(super) fn integer_list(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto {
        name: Some(name.to_owned()),
        ints: values.to_vec(),
        r#type: Some(AttributeType::INTS),
        ..AttributeProto::default()
    }
}

fn value_info(name: &str, kind: DataType, dimensions: &[&str]) -> ValueInfoProto {
    let dim = dimensions
        .iter()
        .map(|&dimension| Dimension { dim_param: Some(dimension.to_owned()), ..Dimension::default() })
        .collect();
    let tensor = TypeProtoTensor { elem_type: Some(kind), shape: Some(TensorShapeProto { dim }) };
    ValueInfoProto {
        name: Some(name.to_owned()),
        r#type: Some(TypeProto { tensor_type: Some(tensor), ..TypeProto::default() }),
    }
}
